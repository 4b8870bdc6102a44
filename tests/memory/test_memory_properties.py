"""Whatever is in a namespace, a look at memory raises nothing, changes nothing, and counts each byte once."""

from __future__ import annotations

import itertools
import sys
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.fingerprints import fingerprint, global_state, shape_of_container
from tests.made_up import Maker
from tests.odd_objects import TOUCHED
from tests.test_look_properties import SHARED
from torchmagic.measuring import look
from torchmagic.measuring.attribution import attribute
from torchmagic.namespace import undisturbed


def state(maker):
    """Return what all objects are like, and how many hold them."""
    return (
        [fingerprint(tensor) for tensor in maker.tensors],
        [shape_of_container(obj) for obj in maker.made],
        [sys.getrefcount(obj) for obj in maker.made if type(obj) not in SHARED],
        [sys.getrefcount(tensor) for tensor in maker.tensors],
    )


def told(report):
    """Return what a report says of names."""
    return [holder.to_dict() for holder in (*report.holders, *report.opened)]


@pytest.mark.filterwarnings("ignore")  # those of the kinds of tensors that are made here
@settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@seed(0)
@given(choices=st.binary(min_size=64, max_size=64))
def test_a_look_changes_nothing_and_says_the_same_twice(choices):
    """With every variable opened, and with one as an output that nothing else holds."""
    maker = Maker(choices)
    names = maker.namespace()
    names["_oh"] = {1: maker.value(2)}
    paths = sorted(names.keys() - {"_oh"})
    TOUCHED.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        everything = global_state()
        first = told(look(names, paths=paths))
        before = state(maker)
        second = look(names, paths=paths)
        shown = str(second), second._repr_mimebundle_()["text/html"]
        assert global_state() == everything

    assert TOUCHED == []
    assert state(maker) == before
    assert told(second) == first
    assert all(shown)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@seed(1)
@given(choices=st.binary(min_size=64, max_size=64))
def test_every_byte_of_every_storage_has_one_holder(choices):
    """Those of the plain tensors that were made, each storage once, are in the sum, and no address is in it twice."""
    maker = Maker(choices)
    names = maker.namespace()
    names["everything"] = list(maker.tensors)
    with undisturbed():
        whole = attribute(names)
    spans = sorted((block.device, min(c.stretch.start for c in block.claims), block.bytes) for block in whole.blocks)
    held = {(device, start): size for device, start, size in spans}
    plain = [t for t in maker.tensors if type(t) is torch.Tensor and t.layout is torch.strided and not t.is_nested]
    own = [t.untyped_storage() for t in plain if t.device.type != "meta" and not t.is_mkldnn]

    for (device, start, size), following in itertools.pairwise(spans):
        assert device != following[0] or start + size <= following[1]
    for storage in own:
        if storage.nbytes():
            inside = [size for (_, start), size in held.items() if start <= storage.data_ptr() < start + size]
            assert len(inside) == 1
            assert inside[0] >= storage.nbytes()
    assert sum(holder.bytes for holder in whole.holders()) == sum(size for _, _, size in spans)


class Elements(HTMLParser):
    """The elements of some HTML; one that is not closed in its turn is an error."""

    def __init__(self, html):
        super().__init__()
        self.open, self.attributes, self.words = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data.split()


HOSTILE = """</code></table><script>alert(1)</script><img src=x onerror="alert(2)">\u202e\x1b[2J"""


def test_names_are_shown_and_not_run():
    """A key may hold anything; it is escaped on the page, and moves no cursor in a terminal."""
    report = look({"d": {HOSTILE: torch.zeros(3)}, "x": np.zeros(2)}, paths=["d"])
    html, text = report._repr_mimebundle_()["text/html"], str(report)

    assert {*Elements(html).attributes} <= {"class", "style", "role", "aria-level", "aria-label", "title"}
    assert "<script" not in html
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_text_and_html_say_the_same_words():
    """But for the bar and the marks of its parts, which are colours there."""
    model = torch.nn.Linear(300, 300)
    names = {"model": model, "loss": model(torch.ones(2, 300)).exp().sum(), "_oh": {3: torch.zeros(4)}}
    report = look(names)
    lines = [line for line in str(report).splitlines() if not line.startswith("  [")]
    words = [word for line in lines for word in line.replace("`", "").split()]
    marks = {"█", "▓", "▒", "░", "+", "x", "·"}

    assert [word for word in Elements(report._repr_mimebundle_()["text/html"]).words if word not in marks] == [
        word for word in words if word not in marks
    ]
