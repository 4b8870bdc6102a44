"""`%gpumem --free` lets go of what only the notebook's history holds, and says what came back from each."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
import torch

CHAINED = """\
def load():
    rows = torch.zeros(3000)
    raise KeyError('rows')
def train():
    batch = torch.zeros(2000)
    try:
        load()
    except KeyError as error:
        raise ValueError('no rows') from error
try:
    train()
finally:
    last = torch.zeros(1)
    def again():
        more = torch.zeros(1000)
        1/0
    again()
"""

FAILING = """\
def f():
    x = torch.zeros(100)
    raise ValueError
try:
    f()
except ValueError as error:
    kept_errors.append(error)
    raise
"""


@pytest.fixture
def freed(shell, run):
    """Return a function that frees, and returns the bytes that came back by each step, and what was printed."""
    gc.collect()  # what the tests before left

    def free():
        out = run("%gpumem --free -o kept").out
        return [sum(step.freed.values()) for step in shell.user_ns.pop("kept").steps], out

    return free


def test_outputs_come_back(shell, run, freed):
    """Of those that no variable names; `Out` and its short names are empty, and stay what they are."""
    run("import torch, numpy\nx = torch.zeros(100)\nx")
    run("torch.zeros(1000)")
    run("[numpy.ones(500)]")
    out = shell.user_ns["Out"]
    steps, text = freed()

    # The last one is also the result of the last cell.
    assert steps == [4000, 0, 4000, 0, 0]
    assert out is shell.user_ns["Out"] is shell.user_ns["_oh"]
    assert (out, shell.user_ns["_"], shell.user_ns["___"]) == ({}, "", "")
    assert not {"_1", "_2", "_3"} & {*shell.user_ns, *shell.user_ns_hidden}
    assert text.splitlines()[0] == "gpumem: 8.0 kB on cpu came back"
    assert "3 results were in them." in text
    run("40 + 2")
    assert (shell.user_ns["_"], list(out.values())) == (42, [42])


def test_a_name_that_the_user_took_over_is_left_alone(shell, run, freed):
    """The `_` of a loop is a variable."""
    run("import torch\ntorch.zeros(10)")
    run("for _ in [torch.ones(20)]: pass\n_1 = 'mine'")
    freed()

    assert shell.user_ns["_"].shape == (20,)
    assert shell.user_ns["_1"] == "mine"


def test_the_frames_of_chained_exceptions_come_back(shell, run, freed):
    """Those of its cause and of what was handled when it came, too; other frames of the error are gone with them."""
    run("import torch")
    run(CHAINED)
    error = shell.last_execution_result.error_in_exec
    steps, text = freed()

    assert sum(steps) == 4 * (3000 + 2000 + 1000)
    assert steps[1] + steps[2] + steps[3] == sum(steps)
    assert "`%debug` and `%tb` have no exception to show any more." in text
    assert not hasattr(sys, "last_value")
    assert error.__traceback__ is error.__context__.__traceback__ is error.__context__.__cause__.__traceback__ is None
    assert "No traceback available" in run("%tb").out + run("%tb").err


def test_an_exception_that_a_variable_holds_keeps_its_frames(shell, run, freed):
    """It is the user's, and is named."""
    run("import torch\nkept_errors = []")
    run(FAILING)
    steps, text = freed()

    assert sum(steps) == 0
    assert shell.user_ns["kept_errors"][0].__traceback__ is not None
    assert "`kept_errors[0]` is the last exception, or in its chain: its frames stay, with what they hold." in text
    assert "%debug" not in text


def test_what_refers_to_itself_comes_back(shell, run, freed):
    """As a module that holds its parent."""
    run("import torch, gc\ngc.disable()\nloop = [torch.zeros(100)]\nloop.append(loop)\ndel loop")
    steps, _ = freed()
    run("gc.enable()")

    assert steps == [0, 0, 0, 400, 0]


def test_nothing_to_free_is_said(run, freed):
    """And nothing is said to be lost."""
    run("import torch")
    _, text = freed()

    assert text.splitlines()[0] == "gpumem: nothing came back"
    assert "%debug" not in text
    assert "are empty" not in text


def test_variables_stay(shell, run, freed):
    """Nothing of the user's goes."""
    shell.user_ns.update(x=torch.zeros(10), a=np.zeros(10))
    run("x")
    freed()

    assert shell.user_ns["x"].shape == shell.user_ns["a"].shape == (10,)


def test_it_has_a_line_of_its_own(run):
    """It would be a strange thing to do before a cell."""
    assert run("%%gpumem --free\n1").err == "UsageError: --free has a line of its own: %gpumem --free\n"
    assert run("%gpumem --free x").err == "UsageError: --free has a line of its own: %gpumem --free\n"


def test_caches_of_allocators_that_were_started_are_emptied(monkeypatch):
    """What each gave back is the difference of what it had reserved; the others are not asked."""
    from types import SimpleNamespace

    from torchmagic.measuring.freeing import empty_caches

    reserved = {0: 12, 1: 3}
    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        device_count=lambda: 2,
        memory_reserved=lambda index: reserved[index],
        empty_cache=lambda: reserved.update({0: 2}),
    )
    monkeypatch.setattr(torch, "cuda", cuda)
    monkeypatch.setattr(torch, "xpu", SimpleNamespace(is_initialized=lambda: False))

    assert empty_caches() == {"cuda:0": 10}


def test_in_a_kernel(kernel):
    """The frames of a cell that failed there come back too, and nothing else of the kernel's holds them."""
    kernel.run("import torch, gc\ngc.collect()\n%gpumem --free")
    failed = kernel.run("def train():\n    batch = torch.zeros(100_000)\n    raise ValueError\ntrain()")
    kernel.run("torch.zeros(50_000)")
    freed = kernel.run("%gpumem --free")

    assert failed.ename == "ValueError"
    assert freed.text("display").splitlines()[0] == "gpumem: 600 kB on cpu came back"
