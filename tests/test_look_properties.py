"""Whatever is in a namespace, the look raises nothing, changes nothing, and says the same thing twice.

`make properties` looks at 10,000 namespaces; the tests look at a few hundred.
"""

from __future__ import annotations

import gc
import itertools
import os
import sys
import traceback
import types
import warnings

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fingerprints import fingerprint, global_state, shape_of_container
from tests.made_up import Maker
from tests.odd_objects import TOUCHED
from torchmagic.checking import check, take_snapshot

EXAMPLES = int(os.environ.get("TORCHMAGIC_EXAMPLES", "300"))
SEED = int(os.environ.get("TORCHMAGIC_SEED", "0"))
"""Two processes with different seeds make up different namespaces."""

CELLS = {
    text: compile(text, "<cell>", "exec")
    for text in (
        "for x in a:\n    b.append(x)\n    c += x\n    loss = d(x)\n    loss.backward()\n",
        "e = a\ne[0] = 1\nb.cpu()\nc = b.numpy()\n",
        "a.item\nb = a.detach\na *= 2\nb = torch.log(a) / a\n",
        "best = a.state_dict()\nb.step()\nlosses = [a] * 3\n",
        "y = a @ b + c\nd.add_(y)\n",
        "def f(x):\n    global c\n    c = c + a(x)\n    return c\nf(b)\n",
    )
}
SHARED = (types.NoneType, int, float, str, type, types.ModuleType, types.BuiltinFunctionType)
"""What the whole process uses has holders that come and go."""

_made = itertools.count()


@pytest.mark.filterwarnings("ignore")  # those of the kinds of tensors that are made here
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
@seed(SEED)
@given(choices=st.binary(min_size=64, max_size=64))
def test_a_look_raises_nothing_and_changes_nothing(choices):
    """The report comes, no rule fails, everything is as it was, and a second look gives the same report."""
    if next(_made) % 1000 == 0:
        gc.collect()  # it gets no other chance, since it is off below
    gc.disable()
    try:
        _look_twice(Maker(choices))
    finally:
        gc.unfreeze()
        gc.enable()


def _look_twice(maker):
    names = {"torch": torch, **maker.namespace()}
    before = take_snapshot(names)
    source, error = _run_a_cell(maker, names)
    TOUCHED.clear()
    state = _state(maker)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        everything = global_state()
        report = check(names, source=source, error=error, before=before, filename="<cell>", level="note")
        said, shown = _said(report), (str(report), report._repr_mimebundle_()["text/html"])
        del report
        # A tensor that only a graph knew gets an object when it is first looked at, which stays as long as the graph
        # does. Whatever the collector knows from here on was made by the second look.
        gc.freeze()
        again = _said(check(names, source=source, error=error, before=before, filename="<cell>", level="note"))
        assert global_state() == everything

    assert TOUCHED == []
    assert _state(maker) == state
    assert [obj for obj in gc.get_objects() if issubclass(type(obj), (torch.Tensor, torch.nn.Module))] == []
    assert said["failures"] == []
    assert said == again
    assert all(shown)


def _run_a_cell(maker, names):
    """Run one of the cells, or none, and return its text and its error."""
    text = maker.pick((*CELLS, None))
    if text is None:
        return None, None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            exec(CELLS[text], names)
    except Exception as problem:
        _ask_for_variables(problem.__traceback__.tb_next)
        return text, problem
    return text, None


def _ask_for_variables(trace):
    """Before Python 3.13, a frame that was asked keeps a copy of its variables, and so each of them once more."""
    for frame, _ in traceback.walk_tb(trace):
        frame.f_locals  # noqa: B018


def _state(maker):
    """Return what all objects are like, and how many hold them."""
    return (
        [fingerprint(tensor) for tensor in maker.tensors],
        [shape_of_container(obj) for obj in maker.made],
        [sys.getrefcount(obj) for obj in maker.made if type(obj) not in SHARED],
        [sys.getrefcount(tensor) for tensor in maker.tensors],
    )


def _said(report):
    said = report.to_dict()
    del said["looked"]["seconds"]
    return said
