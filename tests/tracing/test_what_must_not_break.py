"""Cells that a dispatch mode of its own accord would end with an error, or the process with them."""

from __future__ import annotations

import sys

import pytest
import torch

from tests.looking import COMMON, look, look_around

FULL = (
    "double = torch.compile(lambda x: (x * 2).sin(), backend='eager', fullgraph=True)\n"
    "out = [double(torch.ones(3)) for _ in range(2)] + [double(torch.ones(4))]"
)
CELLS = {
    "compiled as a whole": FULL,
    "a branch as an operation": "out = [torch.cond(torch.tensor(True), torch.exp, torch.sin, (torch.ones(2),))]",
    "a loop as an operation": (
        "from torch._higher_order_ops.while_loop import while_loop\n"
        "out = while_loop(lambda i: i.sum() < 10, lambda i: (i + 1,), (torch.zeros(1),))"
    ),
    "attention that compiles itself": (
        "from torch.nn.attention.flex_attention import flex_attention\n"
        "q = torch.randn(1, 1, 16, 16)\n"
        "out = [flex_attention(q, q, q)]"
    ),
    "memory given back": (
        "bad = torch.zeros(20).log().nan_to_num(0.0)\n"
        "x = torch.ones(10_000)\n"
        "x.untyped_storage().resize_(0)\n"
        "y = x.detach()\n"
        "z = x.view(100, 100)\n"
        "x.untyped_storage().resize_(40_000)\n"
        "out = [x.fill_(1.0)]"
    ),
}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
@pytest.mark.filterwarnings("ignore")
def test_the_cell_does_what_it_does_without_a_watch(cell):
    """Same values, no error, nothing found."""
    _, bare, _ = look_around(COMMON, cell)
    report, followed, error = look_around(COMMON, cell, trace=True)

    assert error is None
    assert len(followed["out"]) == len(bare["out"])
    assert all(one.equal(other) for one, other in zip(followed["out"], bare["out"], strict=True))
    assert [finding for finding in report.findings if finding.rule == "non-finite"] == []


@pytest.mark.filterwarnings("ignore")
def test_torch_demands_compiled_code_again_afterwards():
    """What is put in the place of TorchDynamo's counter is taken out."""
    look(COMMON, FULL, trace=True)

    counter = getattr(sys.modules["torch._dynamo.eval_frame"], "set_fullgraph_compiled_frame_count", None)

    assert not hasattr(counter, "counts")


@pytest.mark.filterwarnings("ignore")
def test_the_values_of_a_sparse_matrix_are_data():
    """They are read, so that a product with them is not blamed."""
    setup = 'A = torch.eye(3).to_sparse()\nA.values()[1] = float("nan")'
    report = look(COMMON, setup, "out = torch.sparse.mm(A, torch.ones(3, 2))\nloss = out.mean()", trace=True)
    (finding,) = report.findings

    assert (finding.subject, finding.cause) == ("A", "data")
    assert report.skipped == ()


def test_the_result_of_an_operation_that_takes_functions():
    """It is looked at as a whole: what it runs inside is not seen."""
    cell = (
        "p = torch.tensor([0.0, 1.0])\n"
        "h = torch.cond(p.sum() > 0, lambda p: p * p.log(), lambda p: p, (p,))\n"
        "net = nn.Linear(2, 1)\n"
        "loss = net(h).sum()\n"
        "loss.backward()"
    )
    if not hasattr(torch, "cond"):
        pytest.skip("this torch has no cond")
    (finding,) = look(COMMON, cell, trace=True).findings

    assert (finding.line, finding.cause, finding.evidence["operation"]) == (2, "design", "torch.cond")


def test_a_loss_without_a_number():
    """A backward pass on the meta device is followed to its end."""
    cell = (
        "net = nn.Linear(2, 1, device='meta')\n"
        "net(torch.ones(3, 2, device='meta')).sum().backward()\n"
        "p = torch.zeros(2)\n"
        "h = (p * p.log()).sum()"
    )
    report = look(COMMON, cell, trace=True)

    assert [(f.line, f.evidence["operation"]) for f in report.findings if f.rule == "non-finite"] == [(4, "torch.log")]
    assert report.skipped == ()
