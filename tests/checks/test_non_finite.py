"""non-finite: the root of NaN and infinity is named, with its line and cause; deliberate ones are left alone."""

from __future__ import annotations

import pytest

from tests.checks.non_finite_correct import CORRECT
from tests.checks.non_finite_mistakes import MISTAKES
from tests.looking import COMMON, look

SETUP = (
    COMMON
    + """
import math
from torch.utils.data import DataLoader, TensorDataset
"""
)

pytestmark = pytest.mark.filterwarnings("ignore")  # numpy and torch warn of some of these themselves


@pytest.mark.parametrize(("cell", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_the_root_is_named(cell: str, expected: tuple[str, int, str]) -> None:
    """One finding, on the value where the NaN or infinity began, with its line and its cause."""
    report = look(SETUP, cell)

    found = [(f.subject, f.line, f.cause) for f in report.findings if f.rule == "non-finite"]
    assert found == [expected]
    assert report.failures == ()


@pytest.mark.parametrize("cell", CORRECT.values(), ids=CORRECT)
def test_what_is_there_on_purpose_is_left_alone(cell: str) -> None:
    """Masks, markers, open ends, gaps and values that the text deals with are at most a note."""
    report = look(SETUP, cell)

    assert [f.message for f in report.findings if f.rule == "non-finite"] == []
    assert report.failures == ()


def test_two_mistakes_that_do_not_touch_are_two_findings() -> None:
    """Each root has a finding of its own."""
    report = look(SETUP, "\na = torch.tensor([0.0, 1.0]).log() * 0\nb = torch.tensor([1.0, -1.0]).sqrt()\n")

    assert [(f.subject, f.line) for f in report.findings] == [("a", 2), ("b", 3)]


def test_data_of_an_earlier_cell_have_the_line_that_takes_them_in() -> None:
    """The root is the data, though this cell did not make them."""
    report = look(
        SETUP + 'X = torch.randn(5, 3); X[0, 0] = float("nan"); Y = torch.randn(5, 1)',
        "\nnet = nn.Linear(3, 1)\nloss = F.mse_loss(net(X), Y)\nloss.backward()\n",
    )

    assert [(f.subject, f.line, f.cause) for f in report.findings] == [("X", 3, "data")]


def test_the_message_says_how_many_where_and_what_was_reached() -> None:
    """Subject, count, first place, consequences, and the operation with its live argument."""
    cell = "\np = torch.tensor([[0.5, 0.5], [1.0, 0.0]])\nkl = (p * torch.log(p)).sum(1)\ntotal = kl.mean()\n"
    report = look(SETUP, cell)

    assert [f.message for f in report.findings] == [
        "`kl`: 1 of 2 values is NaN, first at [1]; it reached `total`; `log` is to blame, "
        "1 of 4 values of `p` is 0 or less: keep its argument away from 0: `p.clamp_min(1e-12)`"
    ]
    assert report.findings[0].fix is not None
    assert report.findings[0].fix.replacement == "kl = (p * torch.log(p.clamp_min(1e-12))).sum(1)"


def test_the_advice_speaks_of_all_operations_of_the_line() -> None:
    """Clamping one of two logarithms would leave the NaN; no code is shown that does not repair the line."""
    cell = """
p, target = torch.tensor([0.0, 0.5, 1.0]), torch.tensor([0.0, 1.0, 1.0])
bce = -(target * torch.log(p) + (1 - target) * torch.log(1 - p)).mean()
"""
    report = look(SETUP, cell)

    assert [(f.message, f.fix) for f in report.findings] == [
        (
            "`bce`: the value is NaN; `log` is to blame, 1 of 3 values of `p` is 0 or less: "
            "keep the arguments of both `log`s away from 0",
            None,
        )
    ]


EVIDENCE = {
    "below": (
        "x = torch.tensor([-1.0, 2.0])\ny = torch.sqrt(x)",
        "`sqrt` is to blame, 1 of 2 values of `x` is below 0, where it is NaN: "
        "keep its argument above 0: `x.clamp_min(1e-12)`",
    ),
    "at 0": (
        "v = torch.tensor([4.0, 0.0], requires_grad=True)\nlength = v.sqrt().sum()\nlength.backward()",
        "`sqrt` is to blame, 1 of 2 values of `v` is 0, where its derivative is infinite: "
        "keep its argument above 0: `v.clamp_min(1e-12)`",
    ),
    "unnamed": (
        "y = torch.sqrt(torch.tensor([-1.0, 2.0]))",
        "`sqrt` is to blame, NaN below 0: keep its argument above 0",
    ),
    "beyond 1": (
        "c = torch.tensor([1.5, 1.0])\nangle = torch.acos(c)",
        "`acos` is to blame, 1 of 2 values of `c` is above 1 in size, where it is NaN: "
        "keep its argument between -1 and 1: `c.clamp(-1 + 1e-6, 1 - 1e-6)`",
    ),
    "0 without a gradient": (
        "v = torch.tensor([4.0, 0.0])\nshare = v / v.sqrt()",
        "`/` is to blame: keep the divisor away from 0",
    ),
}


@pytest.mark.parametrize(("cell", "words"), EVIDENCE.values(), ids=EVIDENCE)
def test_the_reason_fits_the_live_argument(cell: str, words: str) -> None:
    """A value outside the domain, a value where only the derivative fails, and an argument that is not there."""
    (finding,) = look(SETUP, cell).findings
    code = words.split("`")[-2] if words.endswith("`") else None

    assert finding.message.endswith(f"; {words}")
    assert (finding.fix is not None) == (code is not None)
    assert finding.fix is None or code is None or code.partition(".")[2] in finding.fix.replacement


def test_what_was_reached_may_hold_something_else() -> None:
    """Infinity becomes NaN on its way, so the message says only that it got there."""
    cell = "x = torch.tensor([1.0, 200.0])\nbig = torch.exp(x)\nshare = big / (big.sum() + 1.0)\nmean = share.mean()\n"
    (finding,) = look(SETUP, cell).findings

    assert "1 of 2 values is +Inf, first at [1]; it reached `share` and `mean`; " in finding.message


REPAIRED = {
    "log": "p = torch.tensor([0.5, 0.0])\nentropy = -(p * torch.log(p)).sum()",
    "root": "v = torch.tensor([4.0, 0.0], requires_grad=True)\nlength = v.sqrt().sum()\nlength.backward()",
    "angle": "c = torch.tensor([1.0, 0.2], requires_grad=True)\nloss = torch.acos(c).mean()\nloss.backward()",
}


@pytest.mark.parametrize("cell", REPAIRED.values(), ids=REPAIRED)
def test_the_repaired_cell_is_quiet(cell: str) -> None:
    """With the fix in the place of its line, nothing is found."""
    finding = look(SETUP, cell).findings[0]
    assert finding.fix is not None
    assert finding.line is not None
    lines = cell.splitlines()
    lines[finding.line - 1] = finding.fix.replacement

    assert [str(f) for f in look(SETUP, "\n".join(lines)).findings] == []


def test_a_note_about_gaps_names_the_table_once() -> None:
    """Missing values that are filled are a note, not a finding."""
    report = look(SETUP, "\ncurve = np.full(10, np.nan)\ncurve[:6] = 1.0\nlow = np.nanmin(curve)\n")

    assert [(f.level, f.subject) for f in report.notes if f.rule == "non-finite"] == [("note", "curve")]


def test_parameters_without_a_text_are_judged_alone() -> None:
    """Without a cell, NaN in parameters is an error and NaN in data a note."""
    import torch

    from torchmagic.checking import check

    net = torch.nn.Linear(2, 1)
    with torch.no_grad():
        net.weight.fill_(float("nan"))
    report = check({"net": net, "x": torch.tensor([float("nan")]), "best": float("inf")})

    assert [(f.level, f.subject) for f in report.findings] == [("error", "net.weight")]


def test_a_view_that_refuses_to_tell_whether_it_is_a_leaf_is_passed_over() -> None:
    """Its base was written since, so torch raises when asked; the division beside it is judged all the same."""
    setup = SETUP + "\npair = nn.Parameter(torch.zeros(2))"
    cell = """
first, second = pair
with torch.no_grad():
    pair -= 1.0
share = torch.zeros(2) / torch.zeros(2)
both = [first, second]
"""
    report = look(setup, cell)

    assert report.failures == ()
    assert [(f.subject, f.line) for f in report.findings if f.rule == "non-finite"] == [("share", 5)]


RECORDS = {
    "list": ("losses = [float('nan')]", "losses"),
    "dict": ("history = {'valid': [float('nan')]}", "history['valid']"),
    "object": ("class Log:\n    def __init__(self): self.losses = [math.nan]\nlog = Log()", "log.losses"),
}
TRAINING = """
for step in range(3):
    loss = F.mse_loss(net(X), Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    {record}.append(loss.item())
"""
SETTING = """
net, X, Y = nn.Linear(3, 1), torch.randn(5, 3), torch.randn(5, 1)
opt = torch.optim.SGD(net.parameters(), {lr})
"""


@pytest.mark.parametrize(("setup", "record"), RECORDS.values(), ids=RECORDS)
def test_a_place_held_in_a_record_before_the_cell_is_left_alone(setup: str, record: str) -> None:
    """The first entry stood there before the losses of this cell, which are finite, were added."""
    report = look(SETUP + SETTING.format(lr=0.1) + setup, TRAINING.format(record=record))

    assert [f.message for f in report.findings] == []
    assert report.failures == ()


@pytest.mark.parametrize(("setup", "record"), RECORDS.values(), ids=RECORDS)
def test_what_is_added_to_such_a_record_is_judged(setup: str, record: str) -> None:
    """With the same first entry, a run that diverges is found."""
    report = look(SETUP + SETTING.format(lr=1e30) + setup, TRAINING.format(record=record))

    assert [(f.rule, f.subject) for f in report.findings] == [("non-finite", "loss")]
    assert record in report.findings[0].consequences


TRAINED = """
net, X = nn.Linear(3, 1), torch.ones(8, 3)
opt = torch.optim.Adam(net.parameters())
for step in range(2):
    opt.zero_grad()
    loss = torch.sqrt(net(X) - 100).mean()
    loss.backward()
    opt.step()
"""
STATE = (
    "opt.state[0]['exp_avg']",
    "opt.state[0]['exp_avg_sq']",
    "opt.state[1]['exp_avg']",
    "opt.state[1]['exp_avg_sq']",
)
MODEL = ("net.weight", "net.bias", "net.weight.grad", "net.bias.grad", *STATE)


@pytest.mark.parametrize(
    ("cell", "consequences", "earlier"),
    [("k = 3\n", MODEL, True), ("pred = net(X)\n", ("pred", *MODEL), False)],
    ids=["a cell that does not touch it", "a cell that uses the model"],
)
def test_what_an_earlier_cell_trained_is_one_story(cell: str, consequences: tuple[str, ...], *, earlier: bool) -> None:
    """Without the text of the training, the live objects tell that one loss reached all of it."""
    report = look(SETUP, TRAINED, cell)

    found = [(f.level, f.subject, f.consequences, f.earlier) for f in report.findings]
    assert found == [("error", "loss", consequences, earlier)]


def test_two_models_are_two_stories() -> None:
    """An optimizer's step says nothing of the gradients of parameters that it does not have."""
    cell = """
first, second, X = nn.Linear(3, 1), nn.Linear(3, 1), torch.ones(8, 3)
adam, sgd = torch.optim.Adam(first.parameters()), torch.optim.SGD(second.parameters(), lr=0.1, momentum=0.9)
for step in range(2):
    adam.zero_grad(); sgd.zero_grad()
    one = torch.sqrt(first(X) - 100).mean()
    two = torch.log((second(X) - 100).sqrt()).mean()
    one.backward(); adam.step()
    two.backward(); sgd.step()
"""
    report = look(SETUP, cell)

    assert [(f.subject, f.line) for f in report.findings] == [("one", 6), ("two", 7)]
    assert {name.split(".")[0] for name in report.findings[0].consequences} == {"first", "adam"}
    assert {name.split(".")[0] for name in report.findings[1].consequences} == {"second", "sgd"}


def test_five_hundred_losses_are_told_of_as_their_list() -> None:
    """The entries of one list are one name, whether numbers or tensors."""
    cell = TRAINED.replace("range(2)", "range(500)").replace("for step", "numbers, tensors = [], []\nfor step")
    report = look(SETUP, cell + "    numbers.append(loss.item())\n    tensors.append(loss.detach())\n")

    assert [(f.subject, f.consequences) for f in report.findings] == [("loss", ("tensors", *MODEL, "numbers"))]
