"""shape-mismatch: sizes by variable name, the dimension that disagrees, and what to do; other errors are silent."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, look

RULE = "shape-mismatch"


def said(*cells: str) -> list[tuple[str, int | None, str]]:
    """Return subject, line and message of what explains the error of the last cell."""
    report = look(COMMON, *cells)
    assert report.failures == ()
    return [(f.subject, f.line, f.message) for f in report.findings if f.rule == RULE]


EXPLAINED = {
    "Linear": (
        """
x = torch.randn(3, 5)
fc = nn.Linear(4, 2)
y = fc(x)
""",
        (
            "x",
            4,
            "`x` is [3, 5] and `fc` (Linear) takes 4 features in the last dimension, not 5: make it `nn.Linear(5, 2)`, "
            "or check what comes in",
        ),
    ),
    "Linear after a Flatten": (
        """
images = torch.randn(16, 1, 28, 28)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(100, 10))
out = model(images)
""",
        (
            "model[3]",
            4,
            "`model[3]` (Linear) takes 100 features in the last dimension, and what `model[2]` (Flatten) gives is "
            "[16, 2704]: make it `nn.Linear(2704, 10)`",
        ),
    ),
    "local of a forward pass": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(5, 4), nn.Linear(3, 2)
    def forward(self, x):
        h = torch.relu(self.fc1(x))
        return self.fc2(h)
net = Net()
y = net(torch.randn(3, 5))
""",
        (
            "net.fc2",
            8,
            "`net.fc2` (Linear) takes 3 features in the last dimension, and `h` is [3, 4]: make it `nn.Linear(4, 2)`",
        ),
    ),
    "one of two modules of a class": (
        """
first, second = nn.Linear(5, 3), nn.Linear(5, 3)
x = torch.randn(4, 5)
y = second(first(x))
""",
        (
            "second",
            4,
            "`second` (Linear) takes 5 features in the last dimension, and `first(x)` is [4, 3]: make it "
            "`nn.Linear(3, 3)`",
        ),
    ),
    "batch that is other in the second step": (
        """
model = nn.Linear(4, 2)
for batch in [torch.randn(8, 4), torch.randn(8, 6)]:
    out = model(batch)
""",
        (
            "batch",
            4,
            "`batch` is [8, 6] and `model` (Linear) takes 4 features in the last dimension, not 6: make it "
            "`nn.Linear(6, 2)`, or check what comes in",
        ),
    ),
    "comprehension": (
        """
fc = nn.Linear(5, 2)
batches = [torch.randn(4, 5), torch.randn(4, 3)]
outs = [fc(b) for b in batches]
""",
        (
            "batches[1]",
            4,
            "`b` (your `batches[1]`) is [4, 3] and `fc` (Linear) takes 5 features in the last dimension, not 3: "
            "make it "
            "`nn.Linear(3, 2)`, or check what comes in",
        ),
    ),
    "lambda": (
        """
w = torch.randn(5, 2)
project = lambda t: t @ w
x = torch.randn(4, 3)
out = project(x)
""",
        (
            "x",
            3,
            "`t` (your `x`) is [4, 3] and `w` [5, 2]: dimension 1 of `t` (3) must be as large as dimension 0 of "
            "`w` (5)",
        ),
    ),
    "with block, and a call over several lines": (
        """
x = torch.randn(4, 3)
fc = nn.Linear(5, 2)
with torch.no_grad():
    out = fc(
        x,
    )
""",
        (
            "x",
            5,
            "`x` is [4, 3] and `fc` (Linear) takes 5 features in the last dimension, not 3: make it `nn.Linear(3, 2)`, "
            "or check what comes in",
        ),
    ),
    "hook": (
        """
def widen(module, given, out):
    return out + torch.zeros(7)
fc = nn.Linear(5, 2)
fc.register_forward_hook(widen)
y = fc(torch.randn(3, 5))
""",
        (
            "out",
            3,
            "`out` is [3, 2] and `torch.zeros(7)` [7]: sizes are compared from the last dimension on, and the last is "
            "2 against 7",
        ),
    ),
    "product of an attribute": (
        """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 6))
    def forward(self, h):
        return h @ self.weight
head = Head()
features = torch.randn(2, 5)
out = head(features)
""",
        (
            "features",
            7,
            "`h` (your `features`) is [2, 5] and `head.weight` [4, 6]: dimension 1 of `h` (5) must be as large as "
            "dimension 0 of `head.weight` (4)",
        ),
    ),
    "product that fits the other way round": (
        """
w, x = torch.randn(5, 2), torch.randn(3, 5)
y = w @ x
""",
        (
            "w",
            3,
            "`w` is [5, 2] and `x` [3, 5]: dimension 1 of `w` (2) must be as large as dimension 0 of `x` (3); they fit "
            "the other way round",
        ),
    ),
    "product that either transpose would mend": (
        """
a, b = torch.randn(3, 5), torch.randn(3, 5)
c = torch.matmul(a, b)
""",
        (
            "a",
            3,
            "`a` is [3, 5] and `b` [3, 5]: dimension 1 of `a` (5) must be as large as dimension 0 of `b` (3); `*` "
            "multiplies element by element; turn one of them: `a.T` or `b.T`",
        ),
    ),
    "batches of matrices": (
        """
a, b = torch.randn(2, 3, 5), torch.randn(4, 5, 2)
c = torch.bmm(a, b)
""",
        (
            "a",
            3,
            "`a` is [2, 3, 5] and `b` [4, 5, 2]: dimension 0 of `a` (2) and 0 of `b` (4) count matrices, and "
            "must be the "
            "same",
        ),
    ),
    "einsum": (
        """
x, w = torch.randn(3, 5), torch.randn(4, 2)
y = torch.einsum("ij,jk->ik", x, w)
""",
        ("x", 3, "`x` is [3, 5] and `w` [4, 2]: `j` is 5 in the one and 4 in the other"),
    ),
    "channels of a convolution": (
        """
images = torch.randn(2, 1, 8, 8)
conv = nn.Conv2d(3, 4, 3)
out = conv(images)
""",
        (
            "images",
            4,
            "`images` is [2, 1, 8, 8]: `conv` (Conv2d) takes 3 channels in dimension 1, not 1: make it "
            "`nn.Conv2d(1, 4, ...)`; `images.expand(-1, 3, -1, -1)` repeats the one channel",
        ),
    ),
    "window larger than the image": (
        """
images = torch.randn(2, 3, 8, 8)
conv = nn.Conv2d(3, 4, 9)
out = conv(images)
""",
        (
            "images",
            4,
            "`images` is [2, 3, 8, 8]: 8 x 8 is less than the window of `conv` (Conv2d), 9 x 9: begin with larger "
            "images, or leave out a layer that halves them",
        ),
    ),
    "nothing left to pool": (
        """
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(4), nn.MaxPool2d(2))
out = model(torch.randn(1, 3, 8, 8))
""",
        (
            "model[2]",
            3,
            "`model[2]` (MaxPool2d) takes a window of 2, and what `model[1]` (MaxPool2d) gives is [1, 4, 1, 1]: begin "
            "with larger images, or leave out a layer that halves them",
        ),
    ),
    "rows of a loss": (
        """
logits, labels = torch.randn(3, 5), torch.tensor([0, 1])
loss = F.cross_entropy(logits, labels)
""",
        ("logits", 3, "`logits` has 3 rows and `labels` 2: dimension 0 must be the same"),
    ),
    "class that does not exist": (
        """
logits, labels = torch.randn(3, 5), torch.tensor([0, 4, 7])
loss = F.cross_entropy(logits, labels)
""",
        (
            "labels",
            3,
            "`labels` holds 7, and `logits` [3, 5] has the classes 0 to 4: the last layer must give 8 numbers, or the "
            "class numbers must stay below 5",
        ),
    ),
    "classes that are counted from 1": (
        """
logits, labels = torch.randn(3, 5), torch.tensor([1, 4, 5])
loss = F.cross_entropy(logits, labels)
""",
        (
            "labels",
            3,
            "`labels` holds 5, and `logits` [3, 5] has the classes 0 to 4: the numbers begin at 0: `labels - 1`",
        ),
    ),
    "weight of each class": (
        """
logits, labels = torch.randn(3, 5), torch.tensor([0, 1, 2])
criterion = nn.CrossEntropyLoss(weight=torch.ones(4))
loss = criterion(logits, labels)
""",
        ("criterion.weight", 4, "`criterion.weight` is [4], and `logits` has 5 classes: it takes one weight for each"),
    ),
    "two columns for a yes or no": (
        """
out, y = torch.randn(3, 2), torch.tensor([0.0, 1, 1])
loss = nn.BCEWithLogitsLoss()(out, y)
""",
        ("out", 3, "`out` is [3, 2] and `y` [3]: 2 numbers a row are for `F.cross_entropy`; this loss takes one"),
    ),
    "squared differences": (
        """
out, y = torch.randn(3, 5), torch.randn(4, 5)
loss = F.mse_loss(out, y)
""",
        ("out", 3, "`out` is [3, 5] and `y` [4, 5]: dimension 0 must be the same"),
    ),
    "comparison with the labels": (
        """
scores, labels = torch.randn(8, 3), torch.zeros(6)
right = (scores.argmax(1) == labels).sum()
""",
        ("labels", 3, "`scores.argmax(1)` is [8] and `labels` [6]: dimension 0 must be the same, or 1 in one of them"),
    ),
    "sum in place that would grow": (
        """
x, y = torch.randn(3, 5), torch.randn(4, 3, 5)
x += y
""",
        (
            "x",
            3,
            "`x` is [3, 5] and `y` [4, 3, 5]: the result is larger than `x`, which cannot grow: `x = x + y`",
        ),
    ),
    "index": (
        """
x = torch.randn(3, 5)
last = 5
y = x[:, last]
""",
        ("x", 4, "`x` is [3, 5]: dimension 1 has the indices 0 to 4, and 5 was asked for"),
    ),
    "stack of rows": (
        """
rows = [torch.randn(5), torch.randn(4)]
t = torch.stack(rows)
""",
        (
            "rows[1]",
            3,
            "`rows[0]` is [5] and `rows[1]` [4]: `stack` takes tensors of one size; rows of unequal length: "
            "`nn.utils.rnn.pad_sequence`",
        ),
    ),
    "samples of unequal size": (
        """
from torch.utils.data import DataLoader
loader = DataLoader([(torch.randn(5), 0), (torch.randn(4), 1)], batch_size=2)
for xb, yb in loader:
    pass
""",
        (
            "loader",
            4,
            "`loader` stacks samples into a batch: one is [5], another [4], and dimension 0 differs; bring all to one "
            "size in the data set, or give the DataLoader a `collate_fn` that pads",
        ),
    ),
    "columns of a data set": (
        """
x, y = torch.randn(5, 2), torch.randn(4)
data = torch.utils.data.TensorDataset(x, y)
""",
        ("x", 3, "`x` has 5 rows and `y` 4: each row of a data set takes one from every tensor"),
    ),
    "view of another size": (
        """
x = torch.randn(3, 5)
z = x.view(4, 4)
""",
        ("x", 3, "`x` is [3, 5], 15 values, and [4, 4] takes 16"),
    ),
    "dimension that is not there": (
        """
x = torch.randn(3, 5)
z = torch.softmax(x, dim=2)
""",
        ("x", 3, "`x` is [3, 5] and has the dimensions 0 to 1 (or -2 to -1); 2 was asked for"),
    ),
    "unpacked sizes": (
        """
x = torch.randn(3, 28, 28)
b, c, h, w = x.shape
""",
        (
            "x",
            3,
            "`x` is [3, 28, 28], of 3 dimensions, and `b, c, h, w` takes 4: is the batch missing? `x.unsqueeze(0)`",
        ),
    ),
    "BatchNorm": (
        """
x, bn = torch.randn(3, 5), nn.BatchNorm1d(4)
y = bn(x)
""",
        (
            "x",
            3,
            "`x` is [3, 5] and `bn` (BatchNorm1d) takes 4 features in dimension 1, not 5: make it `nn.BatchNorm1d(5)`, "
            "or check what comes in",
        ),
    ),
    "LayerNorm": (
        """
x, norm = torch.randn(3, 5), nn.LayerNorm(4)
y = norm(x)
""",
        (
            "x",
            3,
            "`x` is [3, 5] and `norm` (LayerNorm) takes 4 features in the last dimension, not 5: make it "
            "`nn.LayerNorm(5)`, or check what comes in",
        ),
    ),
    "Embedding": (
        """
ids, emb = torch.tensor([1, 4]), nn.Embedding(4, 2)
y = emb(ids)
""",
        (
            "ids",
            3,
            "`ids` holds 4, and `emb` (Embedding) has the rows 0 to 3: make it `nn.Embedding(5, 2)`, or check "
            "the numbers",
        ),
    ),
    "features of an LSTM": (
        """
x, lstm = torch.randn(3, 2, 5), nn.LSTM(4, 6)
y, state = lstm(x)
""",
        (
            "x",
            3,
            "`x` is [3, 2, 5] and `lstm` (LSTM) takes 4 features in the last dimension, not 5: make it "
            "`nn.LSTM(5, 6, ...)`, or check what comes in",
        ),
    ),
    "state of a GRU that reads time first": (
        """
x, h0, gru = torch.randn(32, 10, 5), torch.zeros(1, 32, 6), nn.GRU(5, 6)
y, h = gru(x, h0)
""",
        (
            "h0",
            3,
            "`h0` is [1, 32, 6], and `gru` (GRU) needs [1, 10, 6] with `x` [32, 10, 5]: it reads [time, batch, "
            "features], so the batch is 10 here; `batch_first=True` reads [batch, time, features]",
        ),
    ),
    "attention inside of an encoder": (
        """
x = torch.randn(2, 10, 16)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), 1)
y = encoder(x)
""",
        (
            "x",
            4,
            "`x` is [2, 10, 16] and `encoder.layers[0].self_attn` (MultiheadAttention) takes 8 features in the last "
            "dimension, not 16",
        ),
    ),
    "mask of attention": (
        """
x, pad = torch.randn(2, 3, 4), torch.zeros(2, 3, dtype=torch.bool)
attention = nn.MultiheadAttention(4, 2)
y, weights = attention(x, x, x, key_padding_mask=pad)
""",
        (
            "pad",
            4,
            "`pad` is [2, 3], and must be [3, 2], batch by time, with `x` [2, 3, 4]: `attention` (MultiheadAttention) "
            "reads [time, batch, features]; `batch_first=True` reads [batch, time, features]",
        ),
    ),
    "saved state": (
        """
saved = nn.Sequential(nn.Linear(5, 2)).state_dict()
model = nn.Sequential(nn.Linear(4, 2))
model.load_state_dict(saved)
""",
        (
            "model[0].weight",
            4,
            "`model[0].weight` is [2, 4], and [2, 5] in what is loaded: build the model as it was when it was saved",
        ),
    ),
    "loss that is not one number": (
        """
w = nn.Parameter(torch.randn(3))
loss = w * 2
loss.backward()
""",
        ("loss", 4, "`loss` is [3], and `backward()` starts from one number: `loss.mean().backward()`, or `.sum()`"),
    ),
    "meta tensors": (
        """
x, b = torch.randn(3, 5, device="meta"), torch.randn(4, device="meta")
y = x + b
""",
        (
            "x",
            3,
            "`x` is [3, 5] and `b` [4]: sizes are compared from the last dimension on, and the last is 5 against 4",
        ),
    ),
}

MENDED = {
    "features that were not flattened": (
        "images, fc = torch.randn(16, 1, 28, 28), nn.Linear(784, 10)\nout = fc(images)",
        "out = fc(images.flatten(1))",
    ),
    "batch that was flattened too": (
        "images, fc = torch.randn(16, 1, 28, 28), nn.Linear(784, 10)\nout = fc(images.flatten())",
        "out = fc(images.flatten(1))",
    ),
    "image without a batch": (
        "image = torch.randn(3, 32, 32)\n"
        "model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(3600, 10))\nout = model(image)",
        "out = model(image.unsqueeze(0))",
    ),
    "feature without a dimension": (
        "x, model = torch.linspace(0, 1, 100), nn.Linear(1, 1)\ny = model(x)",
        "y = model(x.unsqueeze(-1))",
    ),
    "matrix that is the wrong way round": (
        "a, b = torch.randn(3, 5), torch.randn(7, 5)\nc = (a @ b).relu()",
        "c = (a @ b.T).relu()",
    ),
    "batch of matrices that is the wrong way round": (
        "q, k = torch.randn(2, 7, 8), torch.randn(2, 9, 8)\ns = torch.bmm(q, k) / 8 ** 0.5",
        "s = torch.bmm(q, k.mT) / 8 ** 0.5",
    ),
    "transpose too many": (
        "q, k = torch.randn(2, 7, 8), torch.randn(2, 8, 9)\ns = torch.bmm(q, k.transpose(1, 2))",
        "s = torch.bmm(q, k)",
    ),
    "batches for a function of matrices": (
        "a, b = torch.randn(2, 3, 5), torch.randn(2, 5, 2)\nc = torch.mm(a, b)",
        "c = a @ b",
    ),
    "images that end with their channels": (
        "images, conv = torch.randn(2, 8, 8, 3), nn.Conv2d(3, 4, 3)\nout = conv(images)",
        "out = conv(images.permute(0, 3, 1, 2))",
    ),
    "sequences that end with their channels": (
        "rows, conv = torch.randn(2, 20, 3), nn.Conv1d(3, 4, 3)\nout = conv(rows)",
        "out = conv(rows.transpose(1, 2))",
    ),
    "images without a dimension for the channel": (
        "images, conv = torch.randn(64, 28, 28), nn.Conv2d(1, 4, 3)\nout = conv(images)",
        "out = conv(images.unsqueeze(1))",
    ),
    "a single picture": (
        "image, conv = torch.randn(28, 28), nn.Conv2d(1, 4, 3)\nout = conv(image)",
        "out = conv(image[None, None])",
    ),
    "column of class numbers": (
        "logits, labels = torch.randn(3, 5), torch.tensor([[0], [1], [2]])\nloss = F.cross_entropy(logits, labels)",
        "loss = F.cross_entropy(logits, labels.squeeze(1))",
    ),
    "classes of a sequence": (
        "logits, labels = torch.randn(2, 7, 5), torch.zeros(2, 7).long()\nloss = F.cross_entropy(logits, labels)",
        "loss = F.cross_entropy(logits.transpose(1, 2), labels)",
    ),
    "class numbers that were not flattened": (
        "logits, labels = torch.randn(14, 5), torch.zeros(2, 7).long()\nloss = F.cross_entropy(logits, labels)",
        "loss = F.cross_entropy(logits, labels.reshape(-1))",
    ),
    "target without a column": (
        "out, y = torch.randn(3, 1), torch.tensor([0, 1, 1])\nloss = F.binary_cross_entropy_with_logits(out, y)",
        "loss = F.binary_cross_entropy_with_logits(out, y.unsqueeze(1).float())",
    ),
    "mean of each channel": (
        "images, mean = torch.randn(4, 3, 8, 8), torch.rand(3)\nout = (images - mean) / 2",
        "out = (images - mean[:, None, None]) / 2",
    ),
    "mask of the columns": (
        "x, keep = torch.randn(3, 5), torch.ones(5).bool()\ny = x[keep]",
        "y = x[:, keep]",
    ),
    "columns that are joined": (
        "x, y = torch.randn(3, 5), torch.randn(3, 4)\nz = torch.cat([x, y])",
        "z = torch.cat([x, y], dim=1)",
    ),
    "last batch, which is smaller": (
        "x = torch.randn(20, 4, 7)\nz = x.view(32, -1)",
        "z = x.view(x.shape[0], -1)",
    ),
    "view of a transpose": (
        "x = torch.randn(3, 5)\nz = x.t().view(-1)",
        "z = x.t().reshape(-1)",
    ),
}

SILENT = {
    "error that the user raises": """
x, w = torch.randn(3, 5), torch.randn(4, 2)
raise ValueError("shape mismatch: mat1 and mat2 shapes cannot be multiplied (3x5 and 4x2)")
""",
    "error that is raised in place of torch's": """
x, w = torch.randn(3, 5), torch.randn(4, 2)
try:
    y = x @ w
except RuntimeError as problem:
    raise ValueError("shapes do not fit") from problem
""",
    "error that was handled": """
x, w = torch.randn(3, 5), torch.randn(4, 2)
try:
    y = x @ w
except RuntimeError:
    y = None
""",
    "assertion about sizes": """
x = torch.randn(3, 5)
assert x.shape == (5, 3), "shape mismatch"
""",
    "error of numpy": """
y = np.zeros((2, 3)) @ np.zeros((2, 3))
""",
    "error about dtypes": """
x, fc = torch.randn(3, 5).double(), nn.Linear(4, 2)
y = fc(x)
""",
    "error about devices": """
x, fc = torch.randn(3, 4), nn.Linear(4, 2, device="meta")
y = fc(x)
""",
    "name that does not exist": """
x, fc = torch.randn(3, 5), nn.Linear(4, 2)
y = fcc(x)
""",
    "code under vmap": """
x, w = torch.randn(6, 3, 5), torch.randn(4, 2)
y = torch.vmap(lambda a: a @ w)(x)
""",
}


@pytest.mark.parametrize("case", EXPLAINED)
def test_sizes_are_told_by_name(case: str) -> None:
    """The variable, its sizes, the dimension that disagrees, and what to do."""
    cell, expected = EXPLAINED[case]

    assert said(cell) == [expected]


@pytest.mark.parametrize("case", MENDED)
def test_fixed_line_runs(case: str) -> None:
    """Where one repair is sure, the fixed line is written, and the cell runs with it."""
    cell, expected = MENDED[case]
    report = look(COMMON, cell)
    fixes = [finding.fix for finding in report.findings if finding.rule == RULE]

    assert [fix.replacement for fix in fixes if fix is not None] == [expected]
    assert not look(COMMON, "\n".join([*cell.split("\n")[:-1], expected])).failed


@pytest.mark.parametrize("case", SILENT)
def test_other_errors_are_silent(case: str) -> None:
    """Nothing is said about sizes where torch did not complain about them."""
    assert said(SILENT[case]) == []


def test_place_in_another_cell_is_told() -> None:
    """The line is the cell's; the function, and its line and text, are in the message."""
    defined = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)
    def forward(self, batch):
        return self.fc(batch)
net = Net()
"""
    cell = """
x = torch.randn(3, 5)
y = net(x)
"""

    assert said(defined, cell) == [
        (
            "x",
            3,
            "`batch` (your `x`) is [3, 5] and `net.fc` (Linear) takes 6 features in the last dimension, not 5: make it "
            "`nn.Linear(5, 4)`, or check what comes in (in `forward`, line 7 there: `return self.fc(batch)`)",
        )
    ]


def test_it_is_a_note_with_what_stands_on_the_line() -> None:
    """What is left behind is not wrong, so the level is the least; the line's operands are described."""
    report = look(COMMON, "x, fc = torch.randn(3, 5), nn.Linear(4, 2)\ny = fc(x)")
    (finding,) = report.findings

    assert (finding.level, finding.explains) == ("note", True)
    assert finding.operands == {"fc": "a Linear", "x": "float32 [3, 5]"}
    assert finding.others == ("fc",)
