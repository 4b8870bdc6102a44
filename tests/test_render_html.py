"""Reports, lessons and the list of rules as HTML: the words of the text, safe and well formed."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_render_text import GRAD_HISTORY, LESSONS, NLL, NON_FINITE, NOTE, SOURCE, TOTAL, inspection
from torchmagic.findings import Fix, Inspection, Lesson, Looked
from torchmagic.render.html import lesson_html, report_html, rules_html
from torchmagic.render.text import lesson_text, report_text, rules_text

HOSTILE = """d['</details></div><script>alert(1)</script><img src=x onerror="alert(2)">&amp;\u202e\n\x1b\ud800']"""


class Page(HTMLParser):
    """The elements and the words of some HTML; an element that is not closed in its turn is an error."""

    BLOCKS = frozenset({"div", "p", "ul", "li", "details", "summary", "pre"})

    def __init__(self, html):
        super().__init__()
        self.open, self.elements, self.attributes, self.text = [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.elements.append(tag)
        self.attributes.extend(name for name, _ in attrs)
        self.text.append("\n" if tag in self.BLOCKS else "")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.text.append("\n" if tag in self.BLOCKS else "")

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return "".join(self.text).split()


def words_of(text):
    return text.replace("`", "").split()


@pytest.mark.parametrize(
    "one",
    [
        inspection(NLL, TOTAL, still_standing=2, silenced=1),
        inspection(TOTAL, skipped=("`big`: the walk was cut",), failures=("off-device: KeyError",) * 5),
        inspection(
            NLL, replace(TOTAL, line=None, fix=Fix("if a < b and c:\n    total += 1"), others=tuple("abcdefghij"))
        ),
        inspection(*(replace(NOTE, rule=f"rule-{number}") for number in range(50))),
        inspection(),
        inspection(looked=Looked(arrays=1, bytes=1, seconds=2.0), still_standing=1),
        Inspection(),
    ],
)
def test_text_and_html_say_the_same_words(one):
    """Where nothing is folded away or told a second time, word by word."""
    assert Page(report_html(one)).words == words_of(report_text(one))


@pytest.mark.parametrize("lesson", LESSONS.values(), ids=LESSONS)
def test_a_lesson_says_the_same_words(lesson):
    """What, why, bad, good, how to silence it."""
    assert Page(lesson_html(lesson)).words == words_of(lesson_text(lesson))


def test_the_list_of_rules_says_the_same_words():
    """A list item for each rule."""
    page = Page(rules_html([GRAD_HISTORY, NON_FINITE]))

    assert page.words == words_of(rules_text([GRAD_HISTORY, NON_FINITE]))
    assert page.elements.count("li") == 2


def test_a_report_without_its_styles():
    """What is left where a site strips every attribute: a title, a list, a fold for each finding."""
    html = re.sub(r' (?:class|style|role|aria-level)="[^"]*"', "", report_html(inspection(TOTAL)))

    assert html.replace("<span>", "").replace("</span>", "") == (
        "<div><p>torchcheck: 1 finding · 14 tensors (312 MB), 2 modules, 1 optimizer · 18 ms</p>"
        "<ul><li><details>"
        "<summary>warning <code>total</code> holds the graph of 200 steps (4.2 MB) · line 4 · grad-history</summary>"
        "<div><pre><code>- total += loss(x)\n+ total += loss(x).item()</code></pre>"
        "<p>Why: A value grows a graph that nobody will use. A loss that still requires a gradient holds every step"
        " before it. Memory grows until the kernel dies.</p>"
        "<p>More: <code>%torchcheck explain grad-history</code>.</p>"
        "<p>To silence it, end the line with <code># torchcheck: ignore[grad-history]</code>.</p>"
        "</div></details></li></ul></div>"
    )


def test_a_quiet_report_is_one_line():
    """Nothing to unfold, nothing to read on."""
    page = Page(report_html(inspection()))

    assert [tag for tag in page.elements if tag != "span"] == ["div", "p"]
    assert page.words[:3] == ["torchcheck:", "nothing", "wrong"]


def test_notes_unfold_from_the_quiet_line():
    """One line still, with the notes one click away."""
    page = Page(report_html(inspection(notes=(NOTE, NOTE))))
    line = "torchcheck: nothing wrong · 14 tensors (312 MB), 2 modules, 1 optimizer · 18 ms · 2 notes"

    assert page.elements[:3] == ["div", "details", "summary"]
    assert page.words[: len(line.split())] == line.split()
    assert " ".join(page.words).count("a and b share 400 bytes") == 2


def test_findings_from_earlier_cells_unfold_from_the_first_line_when_they_are_all():
    """The title is not said twice."""
    page = Page(report_html(inspection(replace(TOTAL, earlier=True))))

    assert page.elements[:3] == ["div", "details", "summary"]
    assert page.words[:6] == ["torchcheck:", "1", "finding", "from", "earlier", "cells"]
    assert " ".join(page.words).count("from earlier cells") == 1


def test_notes_and_earlier_findings_are_folded_below_the_findings():
    """Each fold says how many it holds."""
    earlier = replace(TOTAL, earlier=True)

    page = Page(report_html(inspection(NLL, earlier, earlier, notes=(NOTE,))))

    assert "".join(page.text).split("\n").count("2 from earlier cells") == 1
    assert "".join(page.text).split("\n").count("1 note") == 1
    assert page.elements.count("details") == 1 + (1 + 2) + (1 + 1)


def test_both_folds_stand_below_a_quiet_line():
    """Earlier findings and notes are two things to unfold."""
    page = Page(report_html(inspection(replace(TOTAL, earlier=True), notes=(NOTE,))))

    assert [tag for tag in page.elements if tag != "span"][:3] == ["div", "p", "details"]
    assert page.elements.count("details") == 2 + 2


def test_every_fold_tells_the_reason():
    """Who opens the second finding of a rule need not look for the first."""
    html = report_html(inspection(TOTAL, replace(TOTAL, subject="other")))

    assert html.count("Why: ") == 2


def test_nothing_in_a_name_a_message_or_the_source_becomes_markup():
    """Markup, quotes, line ends, escape codes and turned reading directions are shown as characters."""
    lesson = Lesson(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    finding = replace(
        NLL,
        rule=HOSTILE,
        subject=HOSTILE,
        message=f"`{HOSTILE}` {HOSTILE}",
        others=(HOSTILE, "b"),
        consequences=(HOSTILE,),
        fix=Fix(HOSTILE, HOSTILE),
    )
    one = Inspection(
        findings=(finding, replace(finding, earlier=True)),
        notes=(finding,),
        skipped=(HOSTILE,),
        failures=(HOSTILE,),
        source_lines=(HOSTILE,) * 9,
        lessons={HOSTILE: lesson},
    )

    for html in (report_html(one), lesson_html(lesson), rules_html([lesson])):
        page = Page(html)

        assert set(page.elements) <= {"div", "p", "ul", "li", "details", "summary", "span", "code", "pre"}
        assert set(page.attributes) <= {"class", "style", "role", "aria-level"}
        assert "<script" not in html
        assert r"\u202e" in html
        assert all(char.isprintable() for char in html.replace("\n", ""))
        html.encode()


@given(words=st.lists(st.text(max_size=400), min_size=8, max_size=8), line=st.none() | st.integers(-1, 3))
def test_whatever_the_words_a_report_is_made(words, line):
    """Well formed, printable, and with the same words in both forms."""
    rule, subject, message, other, fix, caveat, source, reasons = words
    lesson = Lesson(rule, message, reasons, source, fix)
    finding = replace(
        NLL, rule=rule, subject=subject, message=message, line=line, others=(other,), fix=Fix(fix, caveat)
    )

    one = inspection(finding, source_lines=(source, fix), lessons={rule: lesson}, skipped=(other,))

    assert "".join(Page(report_html(one)).words).replace("`", "") == "".join(words_of(report_text(one)))
    assert "".join(Page(lesson_html(lesson)).words).replace("`", "") == "".join(words_of(lesson_text(lesson)))
    assert all(char.isprintable() for char in report_text(one).replace("\n", ""))


def test_code_that_is_copied_from_a_diff_runs():
    """Neither the marks nor the removed line can be selected."""
    lines = re.search("<pre.*?</pre>", report_html(inspection(TOTAL)), re.DOTALL)[0].split("\n")
    mark = '<span style="-webkit-user-select:none;user-select:none;padding-left:.6em">'

    assert [line.count("user-select:none") for line in lines] == [4, 2]
    assert f"{mark}+ </span>total += loss(x).item()" in lines[1]


def test_colours_come_from_the_page():
    """No text has a colour of its own, and every tint lets the page's own background through."""
    html = report_html(inspection(NLL, TOTAL, notes=(NOTE,))) + lesson_html(GRAD_HISTORY)

    assert re.findall(r"[;\"]color:|#[0-9a-f]{3,6}\b|rgb\(", html) == []
    assert {alpha for alpha in re.findall(r"rgba\([\d,]+,(\.\d+)\)", html) if float(alpha) > 0.6} == set()


def test_a_thousand_findings_stay_short():
    """Notes and earlier findings are cut as well."""
    many = tuple(replace(TOTAL, subject=f"x{number}") for number in range(1000))
    earlier = tuple(replace(finding, earlier=True) for finding in many)

    html = report_html(Inspection(many + earlier, notes=many, source_lines=SOURCE, lessons=LESSONS))

    assert html.count("and 980 more;") == 3
    assert html.count("<li") == 60
    assert len(html) < 150_000
