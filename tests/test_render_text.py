"""Reports, lessons and the list of rules as text, word by word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchmagic.findings import Finding, Fix, Inspection, Lesson, Looked
from torchmagic.render.text import lesson_text, report_text, rules_text
from torchmagic.render.words import count, cut, duration, listed, marked, size, visible

GRAD_HISTORY = Lesson(
    rule="grad-history",
    summary="A value grows a graph that nobody will use.",
    reasons=(
        "A loss that still requires a gradient holds every step before it.\n"
        "Memory grows until the kernel dies.\n\nTake the number with `.item()`."
    ),
    bad="for x in data:\n    total += loss(x)",
    good="for x in data:\n    total += loss(x).item()",
)
NON_FINITE = Lesson("non-finite", "NaN or Inf stands where a number was meant.", "It spreads.", "x = 0 / z", "x = 0.0")
LESSONS = {lesson.rule: lesson for lesson in (GRAD_HISTORY, NON_FINITE)}
LOOKED = Looked(tensors=14, modules=2, optimizers=1, bytes=312_000_000, seconds=0.018)
SOURCE = ("%%torchcheck", "total = 0", "for x in data:", "    total += loss(x)", "nll = -torch.log(p)")
TOTAL = Finding(
    rule="grad-history",
    level="warning",
    subject="total",
    message="`total` holds the graph of 200 steps (4.2 MB)",
    line=4,
    fix=Fix("total += loss(x).item()"),
)
NLL = Finding(
    rule="non-finite",
    level="error",
    subject="nll",
    message="`nll`: 3 of 128 values are Inf, first at [0, 5]",
    line=5,
    others=("p",),
    fix=Fix("nll = -torch.log(p.clamp_min(1e-8))", "Values below `1e-8` no longer send a gradient."),
    consequences=("a", "b"),
)
NOTE = Finding("shared-memory", "note", "a", "`a` and `b` share 400 bytes")


def inspection(*findings, **changes):
    return replace(Inspection(findings, looked=LOOKED, source_lines=SOURCE, lessons=LESSONS), **changes)


def test_a_report_with_findings_says_what_why_and_how_to_fix_it():
    """One line per finding; below it the diff, its caveat, who else is involved, and the reason."""
    report = report_text(inspection(NLL, TOTAL))

    assert report == (
        "torchcheck: 2 findings · 14 tensors (312 MB), 2 modules, 1 optimizer · 18 ms\n"
        "\n"
        "error    `nll`: 3 of 128 values are Inf, first at [0, 5] · line 5 · non-finite\n"
        "         - nll = -torch.log(p)\n"
        "         + nll = -torch.log(p.clamp_min(1e-8))\n"
        "         Values below `1e-8` no longer send a gradient.\n"
        "         Also involved: `p`.\n"
        "         It reached: `a` and `b`.\n"
        "         Why: NaN or Inf stands where a number was meant. It spreads.\n"
        "         More: `%torchcheck explain non-finite`.\n"
        "         To silence it, end the line with `# torchcheck: ignore[non-finite]`.\n"
        "warning  `total` holds the graph of 200 steps (4.2 MB) · line 4 · grad-history\n"
        "         - total += loss(x)\n"
        "         + total += loss(x).item()\n"
        "         Why: A value grows a graph that nobody will use. A loss that still requires a gradient\n"
        "         holds every step before it. Memory grows until the kernel dies.\n"
        "         More: `%torchcheck explain grad-history`.\n"
        "         To silence it, end the line with `# torchcheck: ignore[grad-history]`."
    )


@pytest.mark.parametrize(
    ("looked", "line"),
    [
        (LOOKED, "torchcheck: nothing wrong · 14 tensors (312 MB), 2 modules, 1 optimizer · 18 ms"),
        (Looked(1, 0, 1, 2, 4, 1.2), "torchcheck: nothing wrong · 1 tensor (4 bytes), 1 module, 2 optimizers · 1.2 s"),
        (Looked(2, 3, bytes=2400, seconds=0.02), "torchcheck: nothing wrong · 2 tensors and 3 arrays (2.4 kB) · 20 ms"),
        (Looked(arrays=1, bytes=1, seconds=61), "torchcheck: nothing wrong · 1 array (1 byte) · 1 min 1 s"),
        (Looked(tensors=2, seconds=0.002), "torchcheck: nothing wrong · 2 tensors · 2 ms"),
        (Looked(seconds=0.002), "torchcheck: nothing wrong · no tensors or arrays to look at · 2 ms"),
        (Looked(modules=1), "torchcheck: nothing wrong · no tensors or arrays to look at, 1 module · under 1 ms"),
    ],
)
def test_one_quiet_line_when_nothing_is_wrong(looked, line):
    """What was looked at is counted, and a kind that was not met is not mentioned."""
    assert report_text(Inspection(looked=looked)) == line


@pytest.mark.parametrize(
    ("changes", "verdict", "tail"),
    [
        ({"notes": (NOTE,)}, "nothing wrong", "1 note (`--level note` shows them)"),
        ({"notes": (NOTE,) * 3}, "nothing wrong", "3 notes (`--level note` shows them)"),
        ({"notes": (TOTAL, NOTE, NOTE)}, "no errors", "1 warning, 2 notes (`--level note` shows them)"),
        ({"still_standing": 1}, "nothing new", "1 earlier finding still stands"),
        ({"still_standing": 2}, "nothing new", "2 earlier findings still stand"),
        ({"silenced": 1}, "nothing wrong", "1 silenced"),
    ],
)
def test_short_tails_when_they_are_true(changes, verdict, tail):
    """A tail tells of what is not shown; beside findings that still stand, "nothing wrong" would be untrue."""
    line = report_text(Inspection(looked=Looked(tensors=1, seconds=0.001), **changes))

    assert line == f"torchcheck: {verdict} · 1 tensor · 1 ms · {tail}"


def test_what_was_skipped_and_which_rules_failed():
    """Both are said below the first line, three of each, and the rest is counted."""
    skipped = ("`big`: the walk stopped after 100,000 objects",)
    failures = tuple(f"off-device on `x{number}`: KeyError: 'q'" for number in range(5))

    report = report_text(inspection(skipped=skipped, failures=failures))

    assert report == (
        "torchcheck: nothing wrong · 14 tensors (312 MB), 2 modules, 1 optimizer · 18 ms\n"
        "Skipped: `big`: the walk stopped after 100,000 objects\n"
        "Rule failed: off-device on `x0`: KeyError: 'q'\n"
        "Rule failed: off-device on `x1`: KeyError: 'q'\n"
        "Rule failed: off-device on `x2`: KeyError: 'q'\n"
        "Rule failed: 2 more."
    )


def test_the_reason_of_a_rule_is_told_once():
    """The second finding of a rule has its own diff, and the reason stands above."""
    other = replace(TOTAL, subject="loss_sum", message="`loss_sum` holds the graph of 9 steps", line=3)

    report = report_text(inspection(TOTAL, other))

    assert report.count("Why: ") == 1
    assert report.endswith(
        "warning  `loss_sum` holds the graph of 9 steps · line 3 · grad-history\n"
        "         - for x in data:\n"
        "         + total += loss(x).item()"
    )


def test_findings_from_earlier_cells_come_last_and_short():
    """Their names and facts are shown; what to do about them unfolds in a notebook."""
    earlier = replace(TOTAL, subject="history['loss'][3]", message="`history['loss'][3]` holds a graph", earlier=True)

    report = report_text(inspection(replace(earlier, line=None), NOTE, lessons={}))

    assert report == (
        "torchcheck: 1 finding, and 1 from earlier cells · 14 tensors (312 MB), 2 modules, 1 optimizer ·\n"
        "18 ms\n"
        "\n"
        "note     `a` and `b` share 400 bytes · shared-memory\n"
        "         More: `%torchcheck explain shared-memory`.\n"
        "         To silence it, use `--ignore shared-memory`.\n"
        "\n"
        "1 from earlier cells:\n"
        "warning  `history['loss'][3]` holds a graph · grad-history"
    )


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ((TOTAL,), "1 finding"),
        ((replace(TOTAL, earlier=True),), "1 finding from earlier cells"),
        ((TOTAL, NLL, replace(TOTAL, earlier=True)), "2 findings, and 1 from earlier cells"),
    ],
)
def test_the_first_line_counts(findings, verdict):
    """Findings of this cell and of earlier ones are told apart."""
    assert report_text(inspection(*findings)).startswith(f"torchcheck: {verdict} ·")


def test_a_fix_of_several_lines_keeps_the_line_it_wraps():
    """A line that stays is not shown as removed and added."""
    fix = Fix("with torch.no_grad():\n    total += loss(x)\ntotal += loss(x)\nprint(total)")

    report = report_text(inspection(replace(TOTAL, fix=fix), lessons={}))

    assert (
        "         + with torch.no_grad():\n"
        "         +     total += loss(x)\n"
        "           total += loss(x)\n"
        "         + print(total)\n"
    ) in report
    assert "- total" not in report


def test_a_very_long_fix_is_cut():
    """A screenful shows what is meant."""
    fix = Fix("\n".join(f"a{number} = {number}" for number in range(40)))

    report = report_text(inspection(replace(TOTAL, fix=fix), lessons={}))

    assert "         + a22 = 22\n           ... and 17 more lines\n" in report
    assert "a23" not in report


def test_a_long_reason_is_cut_at_the_end_of_a_sentence():
    """The page of the rule has all of it."""
    lesson = replace(GRAD_HISTORY, reasons=f"It grows. It {'grows and ' * 28}grows. `total` grows. Then it stops.")

    report = report_text(inspection(TOTAL, lessons={"grad-history": lesson}))

    assert "grows. `total` grows.\n         More:" in report
    assert "Then it stops." in lesson_text(lesson)


@pytest.mark.parametrize("line", [None, 0, 99])
def test_a_fix_without_its_source_line_shows_what_to_write(line):
    """A report on a namespace alone has no lines to take away."""
    report = report_text(inspection(replace(TOTAL, line=line), lessons={}))

    assert "         + total += loss(x).item()\n" in report
    assert "         - " not in report


def test_a_message_without_its_subject_gets_it():
    """The subject is never missing and never there twice."""
    report = report_text(inspection(replace(NOTE, message="shares 400 bytes with `b`")))

    assert "note     `a`: shares 400 bytes with `b` · shared-memory\n" in report


def test_who_is_in_the_message_is_not_named_again():
    """The other holders that the message leaves out follow below it."""
    report = report_text(inspection(replace(NOTE, others=("b", "c"))))

    assert "         Also involved: `c`.\n" in report


def test_a_finding_about_no_name_is_its_message():
    """A statement can be wrong without leaving a variable."""
    report = report_text(inspection(replace(NOTE, subject="", message="the line names `step` and does not call it")))

    assert "note     the line names `step` and does not call it · shared-memory\n" in report


def test_very_long_words_are_cut_in_the_middle():
    """A subject of a thousand characters costs two lines, not twelve."""
    subject = f"d['{'k' * 1000}'].grad"

    report = report_text(inspection(replace(NOTE, subject=subject, message=f"`{subject}` is {'very ' * 200}long")))

    assert f"note     `d['{'k' * 26}...{'k' * 21}'].grad` is very very" in report
    assert len(report) < 800
    assert max(map(len, report.split("\n"))) <= 100


def test_what_a_terminal_would_act_on_is_made_visible():
    """Names and source can hold escape codes, line ends and characters that turn the reading direction."""
    subject = "d['\x1b[31m\u202e\n\ud800\u200b']"
    finding = replace(TOTAL, subject=subject, message=f"`{subject}` grows\r", others=("x\x07",))

    report = report_text(inspection(finding, source_lines=("", "", "", "\ttotal\t+=\x1b[0m loss\r"), skipped=("\x00",)))

    assert r"warning  `d['\x1b[31m\u202e\n\ud800\u200b']` grows\r · line 4 · grad-history" in report
    assert "         - total   +=\\x1b[0m loss\n" in report
    assert r"Also involved: `x\x07`." in report
    assert r"Skipped: \x00" in report
    assert all(char.isprintable() for char in report.replace("\n", ""))
    report.encode()


def test_names_in_any_script_stay_as_they_are():
    """Only what cannot be seen is escaped."""
    report = report_text(inspection(replace(NOTE, subject="损失", message="`损失`: 3 个值 é 😀 שלום")))

    assert "note     `损失`: 3 个值 é 😀 שלום · shared-memory\n" in report


def test_a_subject_with_backquotes_is_one_piece():
    """A dictionary's key may hold the quote that marks code."""
    report = report_text(inspection(replace(NOTE, subject="d['`']", message="`d['`']` is NaN")))

    assert "note     `d['`']` is NaN · shared-memory\n" in report


def test_a_thousand_findings_stay_short():
    """Twenty are shown, the rest are counted, and it is said where they are."""
    many = [replace(TOTAL, subject=f"x{number}", message=f"`x{number}` grows") for number in range(1000)]

    report = report_text(inspection(*many))

    assert report.startswith("torchcheck: 1,000 findings · ")
    assert "`x19` grows" in report
    assert "`x20` grows" not in report
    assert report.endswith("and 980 more; `%%torchcheck --output report` keeps all of them in `report`.")
    assert len(report.split("\n")) < 75


def test_a_lesson_says_what_why_and_shows_two_cells():
    """The order is fixed: what, why, bad, good, how to silence it."""
    assert lesson_text(GRAD_HISTORY) == (
        "`grad-history`\n"
        "A value grows a graph that nobody will use.\n"
        "\n"
        "Why\n"
        "    A loss that still requires a gradient holds every step before it. Memory grows until the kernel\n"
        "    dies.\n"
        "\n"
        "    Take the number with `.item()`.\n"
        "\n"
        "Instead of\n"
        "    for x in data:\n"
        "        total += loss(x)\n"
        "\n"
        "Write\n"
        "    for x in data:\n"
        "        total += loss(x).item()\n"
        "\n"
        "To silence it\n"
        "    `# torchcheck: ignore[grad-history]` at the end of a line, or\n"
        "    `%%torchcheck --ignore grad-history` for a whole cell."
    )


def test_an_indented_block_in_a_lesson_is_code():
    """It keeps its lines."""
    lesson = replace(NON_FINITE, reasons="Compare:\n\n    a = 1\n    if a:\n        b = 2\n\nThat is all.")

    assert (
        "Why\n    Compare:\n\n    a = 1\n    if a:\n        b = 2\n\n    That is all.\n\nInstead of\n"
    ) in lesson_text(lesson)


def test_the_list_of_rules_has_a_line_for_each():
    """Name and summary stand in two columns."""
    assert rules_text([GRAD_HISTORY, NON_FINITE]) == (
        "grad-history  A value grows a graph that nobody will use.\n"
        "non-finite    NaN or Inf stands where a number was meant.\n"
        "\n"
        "`%torchcheck explain RULE` says why, and shows a bad and a good cell."
    )


@pytest.mark.parametrize(
    ("used_bytes", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (9949, "9.9 kB"),
        (9950, "10 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (312_000_000, "312 MB"),
        (85_899_345_920, "86 GB"),
        (5 * 10**18, "5,000 PB"),
    ],
)
def test_sizes(used_bytes, words):
    """Decimal units, as the letters say."""
    assert size(used_bytes) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "under 1 ms"),
        (0.0182, "18 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (1.24, "1.2 s"),
        (9.96, "10 s"),
        (59.7, "1 min 0 s"),
        (125, "2 min 5 s"),
    ],
)
def test_durations(seconds, words):
    """As many digits as a person compares."""
    assert duration(seconds) == words


def test_counts_have_plurals_and_thousands():
    """One tensor, two tensors, a dozen thousand."""
    assert [count(1, "tensor"), count(0, "tensor"), count(12000, "tensor")] == [
        "1 tensor",
        "0 tensors",
        "12,000 tensors",
    ]


def test_lists_are_cut_where_that_saves_room():
    """The last name is joined by "and"; "and 1 more" is never longer than the name."""
    written = ["".join(listed(list("abcdefghijklm")[:number], shown=3)) for number in (0, 1, 2, 4, 5, 13)]

    assert written == ["", "a", "a and b", "a, b, c and d", "a, b, c and 2 more", "a, b, c and 10 more"]


def test_prose_is_split_at_its_backquotes():
    """Single or double, as in docstrings; one alone is a character like any other."""
    assert marked("`a` and ``b`` it's `c") == ("a", " and ", "b", " it's `c")


def test_cutting_keeps_both_ends():
    """The limit counts the dots."""
    assert [cut("abcdefghij", 10), cut("abcdefghijk", 10)] == ["abcdefghij", "abcd...ijk"]


def test_visible_text_is_printable_and_stays_the_same_the_second_time():
    """Escapes are made of ASCII alone."""
    once = visible("a\tb\u2028c\U000e0001d")

    assert once == "a\\tb\\u2028c\\U000e0001d"
    assert visible(once) == once
