"""off-device: parts that were put into a module after its move, by whatever statement."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

SETUP = (
    COMMON
    + """
DEV = torch.device("meta")  # stands in for the accelerator
"""
)

ADDED = {
    "index of sequential": (
        """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(DEV)
model[2] = nn.Linear(8, 5)
""",
        [("model[2]", 2)],
    ),
    "index of module list": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 2)])
    def forward(self, x):
        for l in self.layers: x = l(x)
        return x
net = Net()
net.to(DEV)
net.layers[-1] = nn.Linear(4, 9)
""",
        [("net.layers[1]", 10)],
    ),
    "setattr": (
        """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(DEV)
setattr(model, "2", nn.Linear(8, 5))
""",
        [("model[2]", 2)],
    ),
    "append": (
        """
model = nn.Sequential(nn.Linear(4, 8))
model = model.to(DEV)
model.append(nn.Linear(8, 2))
""",
        [("model[1]", 3)],
    ),
    "module dict in function": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.heads = nn.ModuleDict()
    def add(self, name, n):
        self.heads[name] = nn.Linear(4, n)
    def forward(self, x, name):
        return self.heads[name](self.body(x))
net = Net().to(DEV)
net.add("a", 3)
""",
        [("net.heads['a']", 7)],
    ),
    "lora walk": (
        """
class Lora(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.zeros(2, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, 2))
    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T
def add_lora(model):
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, Lora(child))
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).to(DEV)
add_lora(model)
""",
        [("model[0].a", 12), ("model[0].b", 12)],
    ),
    "parameter": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
    def forward(self, x):
        return self.body(x) * self.temp
net = Net().to(DEV)
net.temp = nn.Parameter(torch.ones(4))
""",
        [("net.temp", 8)],
    ),
    "trainer method": (
        """
class Trainer:
    def __init__(self, model):
        self.model = model.to(DEV)
    def new_head(self, n):
        self.model[1] = nn.Linear(8, n)
t = Trainer(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)))
t.new_head(3)
""",
        [("t.model[1]", 5)],
    ),
    "move in chain": (
        """
model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)).to(DEV).eval()
model.add_module("2", nn.Linear(2, 2))
""",
        [("model[2]", 2)],
    ),
    "buffer": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
    def forward(self, x):
        return self.body(x) * self.mask
net = Net()
net = net.to(DEV)
net.register_buffer("mask", torch.ones(4))
""",
        [("net.mask", 9)],
    ),
}

CORRECT = {
    "moved again": """
model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)).to(DEV)
model[1] = nn.Linear(8, 5)
model.to(DEV)
""",
    "moved itself": """
model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)).to(DEV)
model[1] = nn.Linear(8, 5).to(DEV)
""",
    "made there": """
model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)).to(DEV)
model[1] = nn.Linear(8, 5, device=DEV)
model.append(nn.ReLU())
""",
    "embedding back to host on purpose": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.fc = nn.Embedding(9, 4), nn.Linear(4, 2)
    def forward(self, i):
        return self.fc(self.emb(i.cpu()).to(self.fc.weight.device))
net = Net().to(DEV)
net.emb = nn.Embedding(9, 4)
""",
    "skeleton": """
with torch.device("meta"):
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
model[1] = nn.Linear(8, 2)
""",
    "split": """
model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
model[0].to(DEV)
""",
}


@pytest.mark.parametrize(("cell", "expected"), ADDED.values(), ids=list(ADDED))
def test_what_was_put_in_after_the_move(cell: str, expected: list[tuple[str, int]]) -> None:
    """The finding names the part and the statement that put it in."""
    assert flags(look(SETUP, cell.removeprefix("\n"), only=["off-device"]), "off-device") == expected


@pytest.mark.parametrize("cell", CORRECT.values(), ids=list(CORRECT))
def test_parts_that_are_where_they_belong(cell: str) -> None:
    """Nothing is said about parts that are moved too, and about splits and skeletons."""
    report = look(SETUP, cell.removeprefix("\n"), only=["off-device"])

    assert [str(finding) for finding in [*report.findings, *report.notes]] == []
