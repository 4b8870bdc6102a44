"""However a checked cell and its report end, the cell's outcome is its own, and nothing is left behind."""

from __future__ import annotations

import gc
import re
import sys
import weakref

import pytest
import torch  # noqa: F401 -- reports on an empty namespace are one line

from tests.mistakes import LOST

QUIET = re.compile(r"^torchcheck: nothing wrong", re.MULTILINE)


def test_a_cell_that_exits_is_reported_on(run):
    """A kernel goes only after the report."""
    ran = run("%%torchcheck\nimport sys\nsys.exit(3)")

    assert isinstance(ran.result.error_in_exec, SystemExit)
    assert ran.reports == 1


def test_an_interrupted_cell_is_reported_on(run):
    """The interrupt stays the cell's outcome."""
    ran = run("%%torchcheck\nx = 1\nraise KeyboardInterrupt")

    assert isinstance(ran.result.error_in_exec, KeyboardInterrupt)
    assert ran.out.splitlines()[-1].startswith("torchcheck: nothing wrong")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a\nb"), "torchcheck: the report failed: ValueError: a"),
        (KeyboardInterrupt(), "torchcheck: the report failed: KeyboardInterrupt"),
        (TypeError("x" * 200), "torchcheck: the report failed: TypeError: " + "x" * 120),
    ],
)
def test_what_goes_wrong_in_a_report_is_one_line(run, monkeypatch, error, line):
    """The cell's outcome is its own."""

    def fail(*args, **options):
        raise error

    monkeypatch.setattr("torchmagic.checking.check", fail)
    ran = run("%%torchcheck\n40 + 2")

    assert ran.result.success
    assert ran.result.result == 42
    assert line in ran.out.splitlines()
    assert "Traceback" not in ran.out + ran.err


@pytest.mark.parametrize("on", ["", "%torchcheck on"])
def test_what_goes_wrong_before_the_cell_is_one_line(run, monkeypatch, on):
    """The report then knows nothing of what was there before."""

    def fail(*args, **options):
        raise TypeError("odd")

    run(on)
    monkeypatch.setattr("torchmagic.checking.take_snapshot", fail)
    lines = run(f"{'' if on else '%%torchcheck'}\n40 + 2").out.splitlines()

    assert lines[0] == "torchcheck: the report failed: TypeError: odd"
    assert lines[1].endswith("42")
    assert QUIET.match(lines[2])


def test_an_interrupt_before_the_cells_code_stops_the_cell(shell, run, monkeypatch):
    """The look at the namespace is part of the cell that is interrupted."""

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("torchmagic.checking.take_snapshot", interrupt)
    ran = run("%%torchcheck\nx = 1")

    assert isinstance(ran.result.error_in_exec, KeyboardInterrupt)
    assert "x" not in shell.user_ns
    assert ran.reports == 0


def test_what_goes_wrong_in_a_report_of_a_line_is_one_line(run, monkeypatch):
    """The cell goes on; but an interrupt stops the cell that the line stands in."""
    errors = [ValueError("odd"), KeyboardInterrupt()]

    def fail(*args, **options):
        raise errors.pop(0)

    monkeypatch.setattr("torchmagic.checking.check", fail)

    assert run("%torchcheck\nprint('on')").out == "torchcheck: the report failed: ValueError: odd\non\n"
    assert isinstance(run("%torchcheck\nprint('on')").result.error_in_exec, KeyboardInterrupt)


@pytest.mark.filterwarnings("ignore")
def test_a_cell_whose_loop_dies_is_reported_on(shell, run):
    """IPython then knows the cell under another identity."""

    def die(coroutine):
        coroutine.send(None)
        raise RuntimeError("the loop died")

    shell.loop_runner = die
    ran = run("%%torchcheck\nimport asyncio\nawait asyncio.sleep(0)")

    assert str(ran.result.error_in_exec) == "the loop died"
    assert ran.reports == 1
    assert run("x = 1").reports == 0


def test_nothing_is_kept_alive(shell, run):
    """What the user deletes after a report is gone."""
    run("class Thing: pass\nthing = Thing()")
    alive = weakref.ref(shell.user_ns["thing"])
    run("%torchcheck on")
    run("%%torchcheck -o kept\nsame = thing")
    run("again = same")
    run("del thing, same, again")
    gc.collect()

    assert alive() is None


def test_a_strict_error_keeps_no_frames(shell, run):
    """It is shown and never raised."""
    ran = run("%%torchcheck --strict\n" + LOST)

    assert str(ran.result.error_in_exec) == "torchcheck: 1 finding"
    assert ran.result.error_in_exec.__traceback__ is None
    assert sys.last_traceback is None


def test_a_forgotten_report_is_gone(run, shell):
    """Only the variable that was asked for keeps the report."""
    run("%%torchcheck -o kept\nx = 1")
    report = weakref.ref(shell.user_ns["kept"])
    run("del kept")
    shell.last_execution_result = None
    gc.collect()

    assert report() is None
