"""The sentence of a traced finding: the operation as the line spells it, and what explains its result."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, look

SAID = [
    pytest.param(
        "acts = torch.linspace(0, 400, 100).half()\nenergy = acts.square().mean()\nz = energy - energy",
        (2, "torch.square"),
        "born in line 2 in `acts.square()`: it overflowed, the largest value of `acts` is 400, and float16 ends at"
        " 65,504",
        id="another name of a power, and no advice for the mean beside it",
    ),
    pytest.param(
        "a = torch.tensor([0.0, 1.0])\nq = torch.div(a, other=a)\ns = q.sum()",
        (2, "torch.div"),
        "born in line 2 in `torch.div(a, other=a)`: 1 of 2 values of `a` is exactly 0. Keep the divisor away from 0",
        id="a division by its name",
    ),
    pytest.param(
        "x = torch.tensor([0.0, 1.0])\ns = 1 / x\nm = s - s",
        (2, "/"),
        "born in line 2 in `1 / x`: 1 of 2 values of `x` is exactly 0",
        id="a number divided by a tensor",
    ),
    pytest.param(
        "logits = torch.tensor([1.0, 2.0])\nfor t in [1.0, 0.0]:\n    p = torch.softmax(logits / t, -1)\ntop = p.max()",
        (3, "/"),
        "born in line 3 in `logits / t`: `t` is exactly 0. Keep the divisor away from 0",
        id="a tensor divided by a number",
    ),
    pytest.param(
        "p = torch.tensor([[1.0, 3.0], [0.0, 0.0]])\np /= p.sum(1, keepdim=True)\nm = p.mean()",
        (2, "/="),
        "born in line 2 in `p /= p.sum(1, keepdim=True)`: 1 of 2 values of `p.sum(1, keepdim=True)` is exactly 0",
        id="a division in place",
    ),
    pytest.param(
        "g = torch.zeros(2)\ng.div_(g.norm())\nm = g.mean()",
        (2, "Tensor.div_"),
        "born in line 2 in `g.div_(g.norm())`: `g.norm()` is exactly 0",
        id="a division in place by its name",
    ),
    pytest.param(
        "deg = torch.tensor([0.0, 2.0])\ninv = deg.pow(-0.5)\nA = inv[:, None] * torch.eye(2)",
        (2, "torch.pow"),
        "born in line 2 in `deg.pow(-0.5)`: 1 of 2 values of `deg` is exactly 0. A negative power of 0 is infinite:"
        " keep the base away from 0",
        id="a negative power",
    ),
    pytest.param(
        "A = torch.full((4, 4), 1e20)\nC = torch.einsum('ij,jk->ik', A, A)\nD = C - C",
        (2, "torch.einsum"),
        "born in line 2 in `torch.einsum('ij,jk->ik', A, A)`: it overflowed, the largest value of `A` is 1e+20",
        id="an equation is no operand",
    ),
    pytest.param(
        "A = torch.tensor([[1.0, 2.0], [2.0, 1.0]])\nld = torch.logdet(A)\nnll = 0.5 * ld + 1",
        (2, "torch.logdet"),
        "born in line 2 in `torch.logdet(A)`: `A` has a determinant below 0",
        id="a NaN that torch itself writes",
    ),
    pytest.param(
        "ln = nn.LayerNorm(4, eps=0.0)\nx = torch.ones(2, 4)\ny = ln(x)\nloss = y.pow(2).mean()",
        (3, "F.layer_norm"),
        "born in line 3 in `F.layer_norm` of `ln`, called by `ln(x)`: `x`: 2 of 2 rows have a variance of 0, and `eps`"
        " is 0",
        id="rows of one value",
    ),
    pytest.param(
        "x = torch.randn(5, 1)\nz = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)\nloss = z.mean()",
        (2, "torch.std"),
        "born in line 2 in `x.std(1, keepdim=True)`: `x`: its size along dim 1 is 1, and the spread of one value is"
        " 0 / 0",
        id="the spread of rows with one value each",
    ),
    pytest.param(
        "logp = torch.randn(4, 2, 5).log_softmax(-1).requires_grad_()\n"
        "loss = F.ctc_loss(logp, torch.ones(2, 6).long(), torch.tensor([4, 4]), torch.tensor([6, 3]))\n"
        "loss.backward()",
        (2, "F.ctc_loss"),
        "1 of 2 targets is longer than the input",
        id="targets without an alignment",
    ),
    pytest.param(
        "losses = torch.rand(6, requires_grad=True)\n"
        "keep = torch.zeros(6, dtype=torch.bool)\n"
        "loss = losses[keep].mean()\n"
        "loss.backward()",
        (3, "torch.mean"),
        "born in line 3 in `losses[keep].mean()`: `losses[keep]` has no values. The mean of nothing is NaN",
        id="a mean of nothing, and a backward pass of nothing",
    ),
    pytest.param(
        "A = torch.eye(3, requires_grad=True)\nU, S, V = torch.linalg.svd(A)\nU.sum().backward()",
        (2, "torch.linalg.svd"),
        "in the derivative of `torch.linalg.svd(A)` (line 2): 6 of 9 values that it divides by are exactly 0",
        id="equal singular values",
    ),
    pytest.param(
        "w = torch.zeros(3)\ng = torch.func.grad(lambda w: (w ** 2).sum().sqrt())(w)\nstep = w - 0.1 * g",
        (2, "torch.sqrt"),
        "in the derivative of `(w ** 2).sum().sqrt()` (line 2)",
        id="a derivative inside a transform",
    ),
    pytest.param(
        "std = torch.tensor([0.0, 1.0])\n"
        "d = torch.distributions.Normal(torch.zeros(2), std, validate_args=False)\n"
        "logp = d.log_prob(torch.zeros(2))\n"
        "loss = -logp.mean()",
        (3, "torch.log"),
        "born in line 3 in `torch.log`, called by `d.log_prob(torch.zeros(2))`: 1 of 2 values is exactly 0 in what it"
        " was given",
        id="an operation inside a library",
    ),
]


@pytest.mark.parametrize(("cell", "found", "said"), SAID)
def test_the_operation_and_what_explains_it(cell, found, said):
    """The line, the operation's name, and a sentence that is true of the operands."""
    report = look(COMMON, cell, trace=True)
    (finding,) = [finding for finding in report.findings if finding.rule == "non-finite"]

    assert (finding.line, finding.evidence["operation"]) == found
    assert said in finding.message
    assert report.failures == ()
    assert report.skipped == ()


def test_a_step_whose_loss_shows_it_is_told_by_its_forward_pass():
    """The derivative fails as well, but the loss was NaN before."""
    cell = (
        "net = nn.Linear(2, 1)\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for _ in range(3):\n"
        "    p = torch.sigmoid(net(torch.ones(4, 2)) - 200)\n"
        "    loss = -torch.log(p).mean()\n"
        "    opt.zero_grad()\n"
        "    loss.backward()\n"
        "    opt.step()"
    )
    (finding,) = look(COMMON, cell, trace=True).findings

    assert (finding.line, finding.cause, finding.evidence["operation"]) == (5, "design", "torch.log")
    assert finding.evidence["backward_line"] is None
    assert "born in line 5 in `torch.log(p)`: 4 of 4 values of `p` are exactly 0" in finding.message
    assert "The way: log -> mean -> neg -> loss -> net.weight.grad -> net.weight." in finding.details


def test_an_operation_of_a_hook_stands_in_the_way_by_its_own_name():
    """What a hook computes is no derivative."""
    cell = (
        "x = torch.ones(2, requires_grad=True)\n"
        "y = x * 0\n"
        "y.register_hook(lambda g: g / g.norm())\n"
        "(y * 0).sum().backward()"
    )
    (finding,) = look(COMMON, cell, trace=True).findings

    assert (finding.line, finding.evidence["operation"], finding.evidence["backward_line"]) == (3, "/", 4)
    assert finding.details[-1] == "The way: / -> derivative of * -> x.grad."
