"""`--trace` names the operation, the line, the operands and the way of the first NaN or infinity."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, look

FORWARD = [
    pytest.param(
        "p = torch.tensor([0.5, 0.0, 0.5])\nq = p * 1\nentropy = -(q * torch.log(q)).sum()",
        ("entropy", 3, "design", "torch.log"),
        "`entropy`: the value is NaN; born in line 3 in `torch.log(q)`: 1 of 3 values of `q` is exactly 0. Keep its"
        " argument away from 0: `q.clamp_min(1e-12)`",
        ("It was given `q`: float32 [3].", "The way: log -> * -> sum -> neg -> entropy."),
        id="logarithm",
    ),
    pytest.param(
        "hits = torch.tensor([3.0, 0.0])\nseen = torch.tensor([4.0, 0.0])\nrate = hits / seen",
        ("rate", 3, "design", "/"),
        "`rate`: 1 of 2 values is NaN, first at [1]; born in line 3 in `hits / seen`: 1 of 2 values of `seen` is"
        " exactly 0. Keep the divisor away from 0",
        ("It was given `hits`: float32 [2]; `seen`: float32 [2].", "The way: / -> rate."),
        id="division",
    ),
    pytest.param(
        "scores = torch.randn(3, 4)\n"
        "keep = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]).bool()\n"
        'scores = scores.masked_fill(~keep, float("-inf"))\n'
        "probs = scores.softmax(-1)\n"
        "out = probs @ torch.randn(4, 2)",
        ("probs", 4, "design", "torch.softmax"),
        "`probs`: 4 of 12 values are NaN, first at [2, 0]; it reached `out`; born in line 4 in `scores.softmax(-1)`:"
        " `scores`: row 2 is masked everywhere. A row with nothing but -inf has no softmax: leave one entry open",
        ("It was given `scores`: float32 [3, 4].", "The way: softmax -> probs -> @ -> out."),
        id="row masked everywhere",
    ),
    pytest.param(
        "acts = torch.full((2, 3), 300.0).half()\nsq = acts * acts\nm = sq.mean() - sq.mean()",
        ("sq", 2, "design", "*"),
        "`sq`: 6 of 6 values are +Inf, first at [0, 0]; it reached `m`; born in line 2 in `acts * acts`: it overflowed,"
        " the largest value of `acts` is 300, and float16 ends at 65,504",
        (
            "It was given `acts`: float16 [2, 3]; `acts`: float16 [2, 3].",
            "The way: * -> sq -> mean -> - -> m.",
        ),
        id="half precision overflows",
    ),
    pytest.param(
        "logits = torch.randn(3, 4, requires_grad=True)\nloss = F.cross_entropy(logits, torch.full((3,), -100))",
        ("loss", 2, "design", "F.nll_loss"),
        "`loss`: the value is NaN; born in line 2 in `F.nll_loss`, called by"
        " `F.cross_entropy(logits, torch.full((3,), -100))`: every label is -100, which the loss leaves out",
        ("It was given float32 [3, 4]; int64 [3].", "The way: nll_loss -> loss."),
        id="every label ignored",
    ),
    pytest.param(
        "x = torch.tensor([100.0])\ny = x.exp()\nz = y - y",
        ("y", 2, "design", "torch.exp"),
        "`y`: the value is +Inf; it reached `z`; born in line 2 in `x.exp()`: it overflowed, the largest value of `x`"
        " is 100. Large arguments overflow",
        ("It was given `x`: float32 [1].", "The way: exp -> y -> - -> z."),
        id="exponential",
    ),
]


@pytest.mark.parametrize(("cell", "found", "message", "details"), FORWARD)
def test_an_operation_of_the_forward_pass(cell, found, message, details):
    """The operation, its line, its operands, and the way to the variable that is left."""
    report = look(COMMON, cell, trace=True)
    (finding,) = [finding for finding in report.findings if finding.rule == "non-finite"]

    assert (finding.subject, finding.line, finding.cause, finding.evidence["operation"]) == found
    assert finding.message == message
    assert finding.details == details
    assert report.failures == ()
    assert report.skipped == ()


BACKWARD = [
    pytest.param(
        "x = torch.zeros(3, requires_grad=True)\nd = (x ** 2).sum().sqrt()\nd.backward()",
        ("x.grad", 2, "design", "torch.sqrt", 3),
        "in the derivative of `(x ** 2).sum().sqrt()` (line 2): `(x ** 2).sum()` is exactly 0",
        "The way: derivative of sqrt -> derivative of ** -> x.grad.",
        id="root of 0",
    ),
    pytest.param(
        "a = torch.tensor([[1.0, 0.0], [0.0, 1.0]], requires_grad=True)\n"
        "b = torch.tensor([[1.0, 0.0], [0.6, 0.8]])\n"
        "cosine = (a * b).sum(1)\n"
        "angle = torch.acos(cosine)\n"
        "angle.mean().backward()",
        ("a.grad", 4, "design", "torch.acos", 5),
        "in the derivative of `torch.acos(cosine)` (line 4): 1 of 2 values of `cosine` is 1 or -1",
        "The way: derivative of acos -> derivative of * -> a.grad.",
        id="angle of 0",
    ),
    pytest.param(
        "x = torch.tensor([0.0, 1.0], requires_grad=True)\ny = torch.where(x > 0, x.log(), 0.0).sum()\ny.backward()",
        ("x.grad", 2, "design", "torch.log", 3),
        "in the derivative of `x.log()` (line 2): 1 of 2 values of `x` is exactly 0",
        "The way: derivative of log -> x.grad.",
        id="branch not taken",
    ),
    pytest.param(
        "x = torch.tensor([0.0, 4.0], requires_grad=True)\ny = (x ** 0.5).sum()\ny.backward()",
        ("x.grad", 2, "design", "**", 3),
        "in the derivative of `x ** 0.5` (line 2): 1 of 2 values of `x` is exactly 0",
        "The way: derivative of ** -> x.grad.",
        id="power below 1",
    ),
]


@pytest.mark.parametrize(("cell", "found", "reason", "way"), BACKWARD)
def test_an_operation_of_the_backward_pass(cell, found, reason, way):
    """For a gradient, the forward line is to blame, and the line of `backward()` is told beside it."""
    report = look(COMMON, cell, trace=True)
    (finding,) = [finding for finding in report.findings if finding.rule == "non-finite"]

    subject, line, cause, operation, backward_line = found
    assert (finding.subject, finding.line, finding.cause) == (subject, line, cause)
    assert (finding.evidence["operation"], finding.evidence["backward_line"]) == (operation, backward_line)
    assert f"born in the backward pass in line {backward_line}, {reason}" in finding.message
    assert finding.details[-1] == way


def test_a_value_that_the_loss_hides():
    """`where` keeps the overflow out of the loss, and its derivative multiplies it by 0."""
    cell = (
        "raw = torch.tensor([-1.0, 0.5, 200.0], requires_grad=True)\n"
        "out = torch.where(raw <= 0, torch.exp(raw), 1 + raw)\n"
        "out.sum().backward()"
    )
    (finding,) = look(COMMON, cell, trace=True).findings

    assert (finding.subject, finding.line, finding.cause) == ("raw.grad", 2, "design")
    assert "born in line 2 in `torch.exp(raw)`" in finding.message
    assert "the loss does not show it, but its gradient does" in finding.message


def test_the_way_through_functions_of_other_cells():
    """The place is told from the innermost line of the user's to the line of this cell."""
    setup = "def entropy(p):\n    return -(p * p.log()).sum()"
    cell = "p = torch.tensor([1.0, 0.0])\nh = entropy(p)"
    (finding,) = look(COMMON, setup, cell, trace=True, title_of=lambda filename: "In[7]").findings

    assert (finding.subject, finding.line) == ("h", 2)
    assert "born below line 2 in `p.log()`: 1 of 2 values of `p` is exactly 0" in finding.message
    assert finding.details[0] == "It stands in cell In[7], line 2 in `entropy`, called from line 2."


def test_a_module_of_another_cell():
    """The expression of its `forward` is shown, and each operand by its text there."""
    setup = (
        "class Scale(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x / x.sum(-1, keepdim=True)\n"
        "net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), Scale())\n"
        "with torch.no_grad():\n"
        "    net[0].bias.fill_(-5.0)"
    )
    (finding,) = look(COMMON, setup, "out = net(torch.zeros(1, 2))\nloss = out.mean()", trace=True).findings

    assert (finding.subject, finding.line, finding.cause) == ("out", 1, "design")
    assert (
        "born below line 1 in `x / x.sum(-1, keepdim=True)`: `x.sum(-1, keepdim=True)` is exactly 0" in finding.message
    )


def test_a_module_of_torch_is_named_by_its_path():
    """Inside a library the module is named, and its parameters by their paths."""
    setup = "net = nn.Sequential(nn.ReLU(), nn.Linear(2, 1))\nwith torch.no_grad():\n    net[1].weight.fill_(1e38)"
    (finding,) = look(COMMON, setup, "y = net(torch.full((1, 2), 10.0))\nz = y - y", trace=True).findings

    assert (finding.subject, finding.line, finding.cause) == ("y", 1, "explosion")
    assert (
        "born in line 1 in `F.linear` of `net[1]`, called by `net(torch.full((1, 2), 10.0))`: it overflowed, the"
        " largest value that it was given is 1e+38: keep the numbers smaller on the way there"
    ) in finding.message
    assert finding.details[0] == (
        "It was given `net[1].bias`: float32 [1]; float32 [1, 2]; `net[1].weight`: float32 [2, 1]."
    )


def test_a_function_of_the_users_own():
    """Code of the user's that the backward pass runs is blamed at its own line."""
    cell = (
        "class Ratio(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n"
        "        return x.abs()\n"
        "    @staticmethod\n"
        "    def backward(ctx, grad):\n"
        "        (x,) = ctx.saved_tensors\n"
        "        return grad * x / x.abs()\n"
        "w = torch.tensor([1.0, 0.0], requires_grad=True)\n"
        "Ratio.apply(w).sum().backward()"
    )
    (finding,) = look(COMMON, cell, trace=True).findings

    assert (finding.subject, finding.line, finding.cause) == ("w.grad", 9, "design")
    assert "born in line 9 in `grad * x / x.abs()`, in the backward pass in line 11" in finding.message
    assert finding.details[-1] == "The way: / -> w.grad."


def test_an_explosion_is_told_step_by_step():
    """The gradient norms of the steps before, and the step in which they left the ground."""
    cell = (
        "x = torch.linspace(-10, 10, 20).unsqueeze(1)\n"
        "y = 3 * x + 1\n"
        "model = nn.Linear(1, 1)\n"
        "opt = torch.optim.SGD(model.parameters(), lr=1.0)\n"
        "for step in range(60):\n"
        "    loss = F.mse_loss(model(x), y)\n"
        "    opt.zero_grad()\n"
        "    loss.backward()\n"
        "    opt.step()"
    )
    (finding,) = look(COMMON, cell, trace=True).findings

    assert (finding.subject, finding.line, finding.cause) == ("loss", 6, "explosion")
    assert finding.evidence["left_the_ground"] == 3
    assert len(finding.evidence["growth"]) == 21
    assert "it overflowed, the largest value that it was given is" in finding.message
    assert finding.details[-1].startswith("The gradient norm was 222 in step 1, left the ground in step 3 and reached ")
    assert finding.details[-1].endswith(", and NaN in step 21: ▁▁▁▂▂▂▃▃▃▄▄▅▅▅▆▆▆▇▇██")


def test_data_that_held_it_before():
    """What came in with the data is told with the operation that read it first, and where in the batch."""
    setup = 'X = torch.randn(12, 3); X[7, 1] = float("nan")'
    cell = (
        "net = nn.Linear(3, 1)\n"
        "opt = torch.optim.Adam(net.parameters())\n"
        "for batch in X.split(4):\n"
        "    loss = net(batch).pow(2).mean()\n"
        "    opt.zero_grad()\n"
        "    loss.backward()\n"
        "    opt.step()"
    )
    (finding,) = look(COMMON, setup, cell, trace=True).findings

    assert (finding.subject, finding.cause) == ("X", "data")
    assert "`F.linear` in line 4 was the first to read them, from `batch`, first at [3, 1]" in finding.message
    assert "The way: X -> linear -> ** -> mean -> loss -> net.weight.grad -> net.weight." in finding.details


def test_memory_that_nobody_wrote():
    """`torch.empty` is blamed when its memory is read before it is written."""
    cell = (
        "torch.use_deterministic_algorithms(True)\n"
        "buf = torch.empty(3)\n"
        "total = buf.sum() + 1\n"
        "torch.use_deterministic_algorithms(False)"
    )
    (finding,) = look(COMMON, cell, trace=True).findings

    assert (finding.subject, finding.line, finding.cause) == ("buf", 2, "design")
    assert "it was read from `torch.empty` before anything was written there" in finding.message


CORRECT = {
    "-inf masks": 'scores = torch.randn(3, 3).masked_fill(torch.ones(3, 3).triu(1).bool(), float("-inf"))\n'
    "weights = scores.softmax(-1)",
    "a full mask": 'mask = torch.full((4, 4), float("-inf")).triu(1)\nweights = (torch.randn(4, 4) + mask).softmax(-1)',
    "a branch not taken": "den = torch.tensor([0.0, 4.0])\nsafe = torch.where(den > 0, 1 / den, torch.zeros(()))",
    "start values": 'best = float("inf")\nlow = torch.full((3,), float("inf"))\n'
    "for row in torch.randn(5, 3):\n    low = torch.minimum(low, row)",
    "empty, then filled": "out = torch.empty(4, 3)\nfor i in range(4):\n    torch.mul(torch.ones(3), i, out=out[i])",
    "a scaler's skipped step": "net = nn.Linear(2, 1)\n"
    "opt = torch.optim.SGD(net.parameters(), lr=0.01)\n"
    'scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)\n'
    "for _ in range(2):\n"
    "    opt.zero_grad()\n"
    "    loss = net(torch.full((4, 2), 1e4)).pow(2).mean()\n"
    "    scaler.scale(loss).backward()\n"
    "    scaler.step(opt)\n"
    "    scaler.update()\n"
    "opt.zero_grad()",
    "filled at once": "ratio = torch.nan_to_num(torch.tensor([1.0, 0.0]) / torch.tensor([2.0, 0.0]))",
}


@pytest.mark.parametrize("cell", CORRECT.values(), ids=CORRECT)
def test_correct_code_is_not_blamed(cell):
    """What is meant, masked or put right is no finding, however many infinities passed by."""
    report = look(COMMON, cell, trace=True)

    assert report.findings == ()
    assert report.failures == ()


def test_without_a_trace_the_report_says_how_to_get_one():
    """One sentence, on a finding that operations of this cell made."""
    (finding,) = look(COMMON, "p = torch.zeros(2)\nloss = p.log().sum() * 0").findings

    assert finding.details == ("To see the operation it was born in, run the cell again with `%%torchcheck --trace`.",)
