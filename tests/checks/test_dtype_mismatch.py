"""dtype-mismatch: what did not fit is named with its dtype, and the fixed line runs."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, look

SETUP = (
    COMMON
    + """
net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
x = torch.randn(8, 4)
d = torch.from_numpy(np.ones((8, 4)))
y = torch.tensor([0, 1] * 4)
yf = y.float()
lstm = nn.LSTM(4, 5)
"""
)

EXPLAINED = {
    "net(d)": (
        "`d` is float64 (numpy's default), and `net[0]` (Linear) is float32: `d.float()`",
        "net(d.float())",
    ),
    "out = [net(b) for b in d.split(4)]": (
        "`b` is float64 (numpy's default), and `net[0]` (Linear) is float32: `b.float()`",
        "out = [net(b.float()) for b in d.split(4)]",
    ),
    "h = nn.Conv2d(1, 4, 1)(x.byte().view(8, 1, 2, 2))": (
        "`x.byte().view(8, 1, 2, 2)` is uint8, and the Conv2d is float32: `x.byte().view(8, 1, 2, 2).float()`",
        "h = nn.Conv2d(1, 4, 1)(x.byte().view(8, 1, 2, 2).float())",
    ),
    "out, h = lstm(d)": (
        "`d` is float64 (numpy's default), and `lstm` (LSTM) is float32: `d.float()`",
        "out, h = lstm(d.float())",
    ),
    "z = nn.BatchNorm1d(4)(d)": (
        "`d` is float64 (numpy's default), and the BatchNorm1d is float32: `d.float()`",
        "z = nn.BatchNorm1d(4)(d.float())",
    ),
    "r = x @ d.T": (
        "`d.T` is float64 (numpy's default), and `x` is float32: `d.T.float()`",
        "r = x @ d.T.float()",
    ),
    "r = torch.bmm(x[None], d.T[None])": (
        "`d.T[None]` is float64 (numpy's default), and `x[None]` is float32: `d.T[None].float()`",
        "r = torch.bmm(x[None], d.T[None].float())",
    ),
    "r = x.scatter_(1, y[:, None], d)": (
        "`d` is float64 (numpy's default), and `x` is float32: `d.float()`",
        "r = x.scatter_(1, y[:, None], d.float())",
    ),
    "loss = F.cross_entropy(net(x), yf)": (
        "`yf` is float32, and the loss takes class numbers, which are int64: `yf.long()`",
        "loss = F.cross_entropy(net(x), yf.long())",
    ),
    "loss = nn.CrossEntropyLoss()(net(x), y.int())": (
        "`y.int()` is int32, and the loss takes class numbers, which are int64: `y.int().long()`",
        "loss = nn.CrossEntropyLoss()(net(x), y.int().long())",
    ),
    "loss = F.cross_entropy(y, net(x))": (
        "`y` is int64 [8] and stands where the logits belong: the loss takes `net(x)` first, then `y`",
        "loss = F.cross_entropy(net(x), y)",
    ),
    "loss = F.cross_entropy(net(x), yf + 0.5)": (
        "`yf + 0.5` is float32, and the loss takes class numbers, which are int64; it holds numbers with fractions: "
        "for a regression, use `mse_loss`",
        None,
    ),
    "loss = F.cross_entropy(net(x), F.one_hot(y))": (
        "`F.one_hot(y)` is int64 and has the shape of `net(x)`, [8, 2], so it is taken for probabilities, which are "
        "floats: `F.one_hot(y).argmax(1)` makes class numbers of one-hot rows",
        None,
    ),
    "loss = F.cross_entropy(net(x), y, weight=torch.ones(2).double())": (
        "`torch.ones(2).double()` is float64 (numpy's default), and `net(x)` is float32; class weights come in the "
        "dtype of the logits: `torch.ones(2).double().float()`",
        "loss = F.cross_entropy(net(x), y, weight=torch.ones(2).double().float())",
    ),
    "loss = F.binary_cross_entropy_with_logits(net(x)[:, 0], y)": (
        "`y` is int64, and the loss takes the target as float32, like its input: `y.float()`",
        "loss = F.binary_cross_entropy_with_logits(net(x)[:, 0], y.float())",
    ),
    "e = nn.Embedding(5, 3)(yf)": (
        "`yf` is float32, and an index is int64: `yf.long()`",
        "e = nn.Embedding(5, 3)(yf.long())",
    ),
    "e = x[yf]": (
        "`yf` is float32, and an index is int64: `yf.long()`",
        "e = x[yf.long()]",
    ),
    "e = torch.gather(x, 1, index=yf[:, None])": (
        "`yf[:, None]` is float32, and an index is int64: `yf[:, None].long()`",
        "e = torch.gather(x, 1, index=yf[:, None].long())",
    ),
    "m = x.masked_fill(y[:, None], 0)": (
        "`y[:, None]` is int64, and a mask is bool: `y[:, None].bool()`",
        "m = x.masked_fill(y[:, None].bool(), 0)",
    ),
    "m = y.mean()": (
        "`y` is int64, and this operation is defined for floats: `y.float()`",
        "m = y.float().mean()",
    ),
    "accuracy = (net(x).argmax(1) == y).mean()": (
        "`net(x).argmax(1) == y` is bool, and this operation is defined for floats: `(net(x).argmax(1) == y).float()`",
        "accuracy = ((net(x).argmax(1) == y).float()).mean()",
    ),
    "y += 0.5": (
        "`y` is int64 and cannot hold the result of this line, which is float32: `y = y + 0.5`",
        "y = y + 0.5",
    ),
    "y.requires_grad_()": (
        "`y` is int64, and this operation is defined for floats: cast it first, `.float()`",
        None,
    ),
    "out = net(np.ones((8, 4)))": (
        "`np.ones((8, 4))` is a numpy array, and this call takes tensors: "
        "`torch.as_tensor(np.ones((8, 4)), dtype=torch.float32)`",
        "out = net(torch.as_tensor(np.ones((8, 4)), dtype=torch.float32))",
    ),
}


@pytest.mark.parametrize("line", EXPLAINED)
def test_explained(line):
    """The finding names what does not fit; the line with the fix runs."""
    (finding,) = look(SETUP, line).findings
    message, fixed = EXPLAINED[line]

    assert (finding.rule, finding.level, finding.line, finding.explains) == ("dtype-mismatch", "note", 1, True)
    assert finding.message == message
    assert (finding.fix.replacement if finding.fix else None) == fixed
    assert fixed is None or look(SETUP, fixed).findings == ()


def test_in_a_function_the_variable_of_the_notebook_is_named():
    """A local name stands with the variable it is; the fix goes where the error was."""
    cell = """def step(model, rows, labels):
    logits = model(rows)
    return F.cross_entropy(logits, labels)

loss = step(net, x, yf)"""
    (finding,) = look(SETUP, cell).findings

    assert finding.subject == "yf"
    assert finding.line == 3
    assert finding.message == (
        "`labels` (your `yf`) is float32, and the loss takes class numbers, which are int64: `labels.long()`"
    )
    assert finding.fix.replacement == "return F.cross_entropy(logits, labels.long())"


def test_in_a_function_of_an_earlier_cell_the_call_is_fixed():
    """The line of the report and the fix are this cell's, and the message says where it was."""
    earlier = SETUP + "\ndef step(model, rows, labels):\n    return F.cross_entropy(model(rows), labels)\n"
    (finding,) = look(earlier, "loss = step(net, x, yf)").findings

    assert finding.line == 1
    assert finding.fix.replacement == "loss = step(net, x, yf.long())"
    assert "in `step`, line " in finding.message


def test_an_array_of_objects_is_told_by_its_first_object():
    """What makes the array one of objects is named with its place."""
    report = look(SETUP, "ages = np.array([1, None], dtype=object)\nt = torch.from_numpy(ages)")

    assert report.findings[0].message == (
        "`ages` is an array of dtype object, and holds None at [1]; a tensor holds numbers: turn it into numbers first"
    )


def test_an_array_of_objects_that_are_numbers_is_cast():
    """A frame with columns of different dtypes gives such an array."""
    report = look(SETUP, "ages = np.array([1, 2.5], dtype=object)\nt = torch.from_numpy(ages)")

    assert report.findings[0].fix.replacement == 't = torch.from_numpy(ages.astype("float32"))'


@pytest.mark.parametrize(
    "cell",
    [
        'raise RuntimeError("expected m1 and m2 to have the same dtype, but got: float != double")',
        "try:\n    net(d)\nexcept RuntimeError:\n    pass",
        "net(torch.ones(8, 5))",
        "1 / 0",
        "out = net(d.float())",
        "counts = y + 0.5",
    ],
)
def test_other_errors_and_correct_code_are_not_explained(cell):
    """Only torch's own refusal of a dtype is."""
    assert [f.rule for f in look(SETUP, cell).findings if f.rule == "dtype-mismatch"] == []
