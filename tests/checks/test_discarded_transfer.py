"""discarded-transfer: a conversion of a tensor whose result is dropped is named; on a module it is right."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

SETUP = (
    COMMON
    + """
DEV = torch.device("meta")
model = nn.Linear(4, 2)
loader = [(torch.randn(3, 4), torch.randint(0, 2, (3,))) for _ in range(3)]
"""
)

DROPPED = {
    "loop variable": (
        """
for x, y in loader:
    x.to(DEV)
    y = y.to(DEV)
""",
        [("x", 2, "x = x.to(DEV)")],
    ),
    "fields of a batch": (
        """
batch = {"x": torch.ones(2), "y": torch.ones(2)}
batch["x"].to(DEV)
batch["y"].to(DEV)
done = 1
""",
        [("batch['x']", 2, 'batch["x"] = batch["x"].to(DEV)'), ("batch['y']", 3, 'batch["y"] = batch["y"].to(DEV)')],
    ),
    "parameter of a function": (
        """
def prep(t):
    t.half()
    return t
x = torch.ones(3)
z = prep(x)
""",
        [("x", 2, "t = t.half()")],
    ),
    "chain": (
        """
x = torch.ones(3)
x.float().to(DEV)
y = x + 1
""",
        [("x", 2, "x = x.float().to(DEV)")],
    ),
    "attribute": (
        """
class C:
    def __init__(self):
        self.w = torch.ones(3)
    def setup(self):
        self.w.to(DEV)
c = C()
c.setup()
""",
        [("c.w", 5, "self.w = self.w.to(DEV)")],
    ),
    "last line": (
        """
x = torch.ones(3)
x.to(DEV)
""",
        [("x", 2, "x = x.to(DEV)")],
    ),
    "values of a dict": (
        """
for k, v in {"a": torch.ones(2)}.items():
    v.to(DEV)
""",
        [("v", 2, None)],
    ),
    "computed key": (
        """
batch = {"a": torch.ones(2), "b": torch.ones(2)}
for k in batch:
    batch[k].to(DEV)
z = 1
""",
        [("batch", 3, "batch[k] = batch[k].to(DEV)")],
    ),
    "history": (
        """
w = torch.ones(3, requires_grad=True)
w.detach()
z = w * 2
""",
        [("w", 2, "w = w.detach()")],
    ),
    "type": (
        """
labels = torch.zeros(3)
labels.long()
z = 1
""",
        [("labels", 2, "labels = labels.long()")],
    ),
    "two statements on a line of a function": (
        """
def train(m, data, device):
    m.to(device)
    for x, y in data:
        x.to(device); y.to(device)
        out = m(x)
try:
    train(nn.Linear(4, 2), loader, DEV)
except RuntimeError:
    pass
""",
        [("x", 4, "x = x.to(device); y = y.to(device)"), ("y", 4, "x = x.to(device); y = y.to(device)")],
    ),
    "attribute of a module": (
        """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.mask = torch.ones(4)
    def forward(self, x):
        self.mask.to(x.device)
        return self.fc(x) * self.mask
m = M().to(DEV)
o = m(torch.randn(2, 4, device=DEV))
""",
        [("m.mask", 7, "self.mask = self.mask.to(x.device)")],
    ),
    "elements of a list": (
        """
imgs = [torch.ones(2), torch.ones(2)]
for im in imgs:
    im.to(DEV)
z = 1
""",
        [("im", 3, None)],
    ),
}

CORRECT = {
    "module": """
model.to(DEV)
model.half()
z=1
""",
    "in place": """
x = torch.ones(3)
x.detach_()
x.requires_grad_(True)
z=1
""",
    "without a name": """
torch.zeros(1).to(DEV)
z = 1
""",
    "waiting for the device": """
import time
x = torch.ones(3)
t0 = time.perf_counter()
y = x * 2
y.cpu()
dt = time.perf_counter() - t0
""",
    "object of the user's": """
class Box:
    def __init__(self): self.x = torch.ones(2)
    def to(self, d):
        self.x = self.x.to(d); return self
b = Box()
b.to(DEV)
z = 1
""",
    "modules in a loop": """
nets = [nn.Linear(2, 2), nn.Linear(2, 2)]
for net in nets:
    net.to(DEV)
done = True
""",
    "module handed to a function": """
def mv(m):
    m.to(DEV)
    return m
mv(nn.Linear(2, 2))
z=1
""",
}


@pytest.mark.parametrize(("cell", "expected"), DROPPED.values(), ids=list(DROPPED))
def test_a_result_that_is_dropped(cell: str, expected: list[tuple[str, int, str]]) -> None:
    """The finding names the tensor and the line, and binds the result in the text as it was typed."""
    report = look(SETUP, cell.removeprefix("\n"), only=["discarded-transfer"])

    assert [(f.subject, f.line, f.fix and f.fix.replacement) for f in report.findings] == expected
    assert report.failures == ()


@pytest.mark.parametrize("cell", CORRECT.values(), ids=list(CORRECT))
def test_a_line_that_is_right(cell: str) -> None:
    """Nothing is said about correct code."""
    report = look(SETUP, cell.removeprefix("\n"), only=["discarded-transfer"])

    assert [str(finding) for finding in [*report.findings, *report.notes]] == []


def test_the_last_line_may_be_there_to_be_looked_at() -> None:
    """A conversion that a notebook displays is a note, unless it only moves."""
    report = look(SETUP, "x = torch.ones(3)\nx.numpy()", only=["discarded-transfer"])

    assert ([f.subject for f in report.findings], [f.subject for f in report.notes]) == ([], ["x"])


def test_batches_of_a_data_loader() -> None:
    """Inside a function that has ended, the batches of a DataLoader are known to be tensors."""
    cell = """from torch.utils.data import DataLoader, TensorDataset
def run(batches):
    for i, (x, y) in enumerate(batches):
        x.to(DEV)
        y = y.to(DEV)
loader = DataLoader(TensorDataset(torch.ones(4, 2), torch.ones(4)))
run(loader)
"""
    assert flags(look(SETUP, cell, only=["discarded-transfer"]), "discarded-transfer") == [("x", 4)]


def test_a_statement_of_several_lines_has_no_fix() -> None:
    """Only a statement on one line is rewritten."""
    report = look(SETUP, "x = torch.ones(3)\nx.to(\n    DEV,\n)\ndone = True", only=["discarded-transfer"])

    assert [(f.line, f.fix) for f in report.findings] == [(2, None)]


def test_an_optimizer_does_not_follow_a_leaf() -> None:
    """Binding the copy of a tensor that is trained comes with a caveat."""
    report = look(SETUP, "w = torch.ones(3, requires_grad=True)\nw.to(DEV)", only=["discarded-transfer"])

    assert [f.fix and f.fix.caveat for f in report.findings] == [
        "An optimizer built from the old tensor does not train the new one."
    ]


LOST = {
    "item of what a caller shows": (
        """
class Mover:
    def __init__(self, device): self.device = device
    def __call__(self, batch):
        for name in ("x", "y"):
            batch[name].to(self.device)
        return batch
mover = Mover(DEV)
batch = mover({"x": torch.ones(2), "y": torch.ones(2)})
""",
        [("batch", 5)],
    ),
    "literal dict guard": (
        """
def send(batch, device):
    for key, value in batch.items():
        if torch.is_tensor(value):
            value.to(device)
    return batch
batch = send({"x": torch.ones(2), "t": ["a"]}, DEV)
""",
        [("value", 4)],
    ),
    "isinstance, continue-free": (
        """
def send(sample):
    for v in sample.values():
        if isinstance(v, torch.Tensor) and v.dim():
            v.to(DEV)
sample = {"x": torch.ones(2)}
send(sample)
""",
        [("v", 4)],
    ),
    "varargs": (
        """
def to_dev(*tensors):
    for t in tensors:
        t.to(DEV)
a, b = torch.ones(2), torch.ones(3)
to_dev(a, b)
""",
        [("t", 3)],
    ),
    "rebinding the loop variable": (
        """
a, b = torch.ones(2), torch.ones(3)
for t in (a, b):
    t = t.to(DEV)
""",
        [("t", 3)],
    ),
    "rebinding in items": (
        """
batch = {"x": torch.ones(2), "y": torch.ones(2)}
for k, v in batch.items():
    v = v.to(DEV)
""",
        [("v", 3)],
    ),
    "rebinding a parameter": (
        """
def prepare(x, y):
    x, y = x.to(DEV), y.to(DEV)
x, y = torch.ones(2), torch.ones(2)
prepare(x, y)
""",
        [("x", 2), ("y", 2)],
    ),
    "bare comprehension": (
        """
parts = [torch.ones(2), torch.ones(2)]
[p.to(DEV) for p in parts]
z = 1
""",
        [("p", 2)],
    ),
    "conditional": (
        """
x = torch.ones(2)
x.to(DEV) if True else None
z = 1
""",
        [("x", 2)],
    ),
    "zip": (
        """
for x, y in zip([torch.ones(2)], [torch.ones(2)]):
    x.to(DEV); y.to(DEV)
""",
        [("x", 2), ("y", 2)],
    ),
    "list param": (
        """
def push(ts):
    for t in ts:
        t.half()
push([torch.ones(2), torch.ones(2)])
""",
        [("t", 3)],
    ),
    "method of trainer": (
        """
class Trainer:
    def __init__(self, dev): self.dev = dev
    def run(self, loader):
        for batch in loader:
            self._move(batch)
    def _move(self, batch):
        for t in batch:
            t.to(self.dev)
Trainer(DEV).run(loader)
""",
        [("t", 8)],
    ),
}

KEPT = {
    "modules in varargs": """
def to_dev(*mods):
    for m in mods:
        m.to(DEV)
to_dev(nn.Linear(2, 2), nn.Linear(2, 2))
""",
    "read after": """
out = []
for t in [torch.ones(2)]:
    t = t.to(DEV)
    out.append(t)
""",
    "a first batch": """
for x, y in loader:
    x, y = x.to(DEV), y.to(DEV)
    break
""",
    "loading only": """
for x, y in loader:
    x, y = x.to(DEV), y.to(DEV)
""",
    "stored": """
def send(batch, device):
    for k, v in batch.items():
        if torch.is_tensor(v):
            batch[k] = v.to(device)
    return batch
batch = send({"x": torch.ones(2)}, DEV)
""",
    "else of the guard": """
def send(things):
    for v in things:
        if torch.is_tensor(v):
            v.mul_(2)
        else:
            v.to(DEV)
send([nn.Linear(2, 2)])
""",
    "returned": """
def prep(x):
    x = x.to(DEV)
    return x
y = prep(torch.ones(2))
""",
    "closure": """
def prep(x):
    def run():
        return x + 1
    x = x.to(DEV)
    return run
y = prep(torch.ones(2))
""",
    "comprehension that is kept": """
parts = [torch.ones(2)]
parts = [p.to(DEV) for p in parts]
d = {k: v.to(DEV) for k, v in {"a": torch.ones(2)}.items()}
""",
    "modules rebound": """
nets = [nn.Linear(2, 2)]
for n in nets:
    n = n.to(DEV)
""",
    "parameters in place": """
net = nn.Linear(2, 2)
for p in net.parameters():
    p.data = p.data.to(DEV)
""",
    "while": """
def run(x):
    for _ in range(2):
        x = x.float()
        y = x * 2
        x = y.half()
    return y
z = run(torch.ones(2))
""",
}


@pytest.mark.parametrize(("cell", "expected"), LOST.values(), ids=list(LOST))
def test_a_result_that_nobody_gets(cell: str, expected: list[tuple[str, int]]) -> None:
    """What a helper, a comprehension or a local name keeps from its caller is lost as well."""
    assert flags(look(SETUP, cell.removeprefix("\n")), "discarded-transfer") == expected


@pytest.mark.parametrize("cell", KEPT.values(), ids=list(KEPT))
def test_a_result_that_goes_somewhere(cell: str) -> None:
    """Nothing is said where the result is kept or read, or where a module is moved in place."""
    report = look(SETUP, cell.removeprefix("\n"), only=["discarded-transfer"])

    assert [str(finding) for finding in [*report.findings, *report.notes]] == []


def test_a_helper_of_an_earlier_cell() -> None:
    """The line is that of the call, and the words name the function."""
    helper = "def send(batch, device):\n    for value in batch.values():\n        value.to(device)\n    return batch"
    report = look(SETUP, helper, "batch = send({'x': torch.ones(2, 2)}, DEV)")

    assert [(f.subject, f.line, f.message, f.fix) for f in report.findings] == [
        (
            "value",
            1,
            "`value`: `value.to(device)` returns a result, which a line of `send` drops, and leaves `value` as it is",
            None,
        )
    ]


def test_the_fix_puts_the_result_where_it_came_from() -> None:
    """An element of a dict goes back under its key."""
    cell = "batch = {'x': torch.ones(2)}\nfor key, value in batch.items():\n    value.to(DEV)"
    (finding,) = look(SETUP, cell).findings

    assert finding.fix is not None
    assert finding.fix.replacement == "batch[key] = value.to(DEV)"
