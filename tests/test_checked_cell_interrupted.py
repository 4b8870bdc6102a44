"""An interrupt in a real kernel is the outcome of what it interrupts."""

from __future__ import annotations

import pytest

from tests.kernels import is_quiet


@pytest.mark.parametrize("above", ["", "%%time\n"])
def test_an_interrupted_loop_is_reported_on(kernel, above):
    """The interrupt is the cell's outcome."""
    outcome = kernel.run(
        f"{above}%%torchcheck\nimport time\nprint('started', flush=True)\nwhile True: time.sleep(0.01)",
        interrupt_at="started",
    )

    assert outcome.kinds[-1] == "display"
    assert is_quiet(outcome.outputs[-1][1])
    assert "KeyboardInterrupt" in str(outcome.outputs)
    assert kernel.run("%%torchcheck\nx = 1").kinds == ["display"]


def test_an_interrupted_await_is_reported_on(kernel):
    """There the kernel cancels the task, and has no result to hand over."""
    outcome = kernel.run(
        "%%torchcheck\nimport asyncio\nprint('started', flush=True)\nwhile True: await asyncio.sleep(0.05)",
        interrupt_at="started",
    )

    assert outcome.status == "error"
    assert outcome.kinds.count("display") == 1
    assert is_quiet(outcome.text("display"))
    assert kernel.run("%%torchcheck\nx = 1").kinds == ["display"]


def test_an_interrupted_backward_is_reported_on(kernel):
    """The autograd engine passes the interrupt on."""
    outcome = kernel.run(
        "%%torchcheck\nimport time\n"
        "class Slow(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(context, x): return x * 2\n"
        "    @staticmethod\n"
        "    def backward(context, gradient):\n"
        "        print('started', flush=True)\n"
        "        while True: time.sleep(0.01)\n"
        "start = torch.ones(2, requires_grad=True)\n"
        "Slow.apply(start).sum().backward()",
        interrupt_at="started",
    )

    assert (outcome.status, outcome.ename) == ("error", "KeyboardInterrupt")
    assert outcome.kinds == ["stdout", "error", "display"]
    assert kernel.run("x = 1").outputs == []


def test_an_interrupted_cell_below_capture_is_reported_on(kernel):
    """The report is where the outputs are that are not captured."""
    outcome = kernel.run(
        "%%capture --no-stdout --no-display seen\n%%torchcheck\nimport time\nprint('started', flush=True)\n"
        "while True: time.sleep(0.01)",
        interrupt_at="started",
    )

    assert is_quiet(outcome.text("display"))
    assert "KeyboardInterrupt" in outcome.text("error")
    assert kernel.run("x = 1").outputs == []


def test_an_interrupted_report_is_one_line(kernel):
    """The interrupt is the report's, not the cell's."""
    kernel.run(
        "import time\nimport torchmagic.checking as checking\nright = checking.check\n"
        "def slow(*args, **options): print('checking', flush=True); time.sleep(50)\nchecking.check = slow"
    )
    outcome = kernel.run("%%torchcheck\n40 + 2", interrupt_at="checking")
    kernel.run("checking.check = right")

    assert outcome.status == "ok"
    assert outcome.text("stdout") == "checking\ntorchcheck: the report failed: KeyboardInterrupt\n"
