"""uncalled-method: a method where its result was meant is named; a method that is there to be called is not."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

SETUP = (
    COMMON
    + """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
loader = [(torch.randn(3, 4), torch.randint(0, 2, (3,))) for _ in range(3)]
criterion = nn.CrossEntropyLoss()
"""
)

MISTAKES = {
    "result of a lambda": (
        """
metric = lambda out, y: (out.argmax(1) == y).float().mean().item
scores = [metric(model(x), y) for x, y in loader]
""",
        [("scores", 1)],
    ),
    "yielded": (
        """
def run(net):
    for x, y in loader:
        yield F.cross_entropy(net(x), y).item
history = list(run(model))
""",
        [("history", 3)],
    ),
    "methods added to a list of results": (
        """
def count(loader):
    kept = []
    for x, y in loader:
        loss = criterion(model(x), y)
        kept += [loss.item]
    return len(kept)
n = count(loader)
""",
        [("loss.item", 5)],
    ),
    "bare zero_grad in a function": (
        """
def train(model, loader, opt):
    for x, y in loader:
        opt.zero_grad
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
train(model, loader, optimizer)
""",
        [("opt.zero_grad", 3)],
    ),
    "bare calls on attributes of an object that is gone": (
        """
class T:
    def __init__(self, m, o): self.m, self.o = m, o
    def fit(self, loader):
        self.m.train
        for x, y in loader:
            self.o.zero_grad()
            loss = F.cross_entropy(self.m(x), y)
            loss.backward()
            self.o.step
T(model, optimizer).fit(loader)
""",
        [("self.m.train", 4), ("self.o.step", 9)],
    ),
    "condition of a conditional": (
        """
device = "cuda" if torch.cuda.is_available else "cpu"
""",
        [("torch.cuda.is_available", 1)],
    ),
    "condition of an if": (
        """
if torch.cuda.is_available:
    pass
""",
        [("torch.cuda.is_available", 1)],
    ),
    "loop over the method": (
        """
for p in model.parameters:
    p.requires_grad = False
""",
        [("model.parameters", 1)],
    ),
    "printed": (
        """
x, y = loader[0]
loss = criterion(model(x), y)
print("loss", loss.item)
""",
        [("loss.item", 3)],
    ),
    "formatted with a specification": (
        """
x, y = loader[0]
loss = criterion(model(x), y)
print(f"loss {loss.item:.3f}")
""",
        [("loss.item", 3)],
    ),
    "formatted as text": (
        """
x, y = loader[0]
loss = criterion(model(x), y)
msg = f"loss {loss.item}"
""",
        [("loss.item", 3)],
    ),
    "indexed": (
        """
x, y = loader[0]
n = x.size[0]
""",
        [("x.size", 2)],
    ),
    "appended to a list in a dict": (
        """
h = {"loss": [], "acc": []}
for x, y in loader:
    out = model(x)
    h["loss"].append(criterion(out, y).item())
    h["acc"].append((out.argmax(1) == y).float().mean().item)
""",
        [("h['acc']", 5)],
    ),
    "a state dict that is none": (
        """
best = model.state_dict

""",
        [("best", 1)],
    ),
    "saved": (
        """
torch.save(model.state_dict, "/dev/null")
""",
        [("model.state_dict", 1)],
    ),
    "handed to an optimizer": (
        """
opt2 = torch.optim.Adam(model.parameters, lr=1e-3)
""",
        [("model.parameters", 1)],
    ),
    "copied": (
        """
best = copy.deepcopy(model.state_dict)
""",
        [("best", 1)],
    ),
    "an unnamed module's method": (
        """
net = nn.Sequential(nn.Linear(4,4)).eval

""",
        [("net", 1)],
    ),
    "added in a function": (
        """
@torch.no_grad()
def evaluate(model, loader):
    total = 0.0
    for x, y in loader:
        total += criterion(model(x), y).item
    return total / len(loader)
acc = evaluate(model, loader)
""",
        [("criterion(model(x), y).item", 5)],
    ),
    "context manager": (
        """
with torch.inference_mode:
    out = model(loader[0][0])
""",
        [("torch.inference_mode", 1)],
    ),
    "bound and used": (
        """
x = loader[0][0]
arr = x.numpy
m = arr.mean()
""",
        [("arr", 2)],
    ),
    "elements of a comprehension": (
        """
vals = [p.norm().item for p in model.parameters()]
s = sum(vals)
""",
        [("vals", 1)],
    ),
    "summed by a generator": (
        """
s = sum(p.numel for p in model.parameters())
""",
        [("p.numel", 1)],
    ),
    "compared with a number": (
        """
loss = criterion(model(loader[0][0]), loader[0][1])
if loss.item > 0.5:
    print("high")
""",
        [("loss.item", 2)],
    ),
    "bare backward": (
        """
loss = criterion(model(loader[0][0]), loader[0][1])
loss.backward
optimizer.step()
""",
        [("loss.backward", 2)],
    ),
    "bare scheduler step": (
        """
scheduler.step
x = 1
""",
        [("scheduler.step", 1)],
    ),
    "indexed method of a scheduler": (
        """
lr = scheduler.get_last_lr[0]
""",
        [("scheduler.get_last_lr", 1)],
    ),
    "sample of a distribution": (
        """
d = torch.distributions.Normal(0., 1.)
a = d.sample
b = a + 1
""",
        [("a", 2)],
    ),
    "handed to a meter": (
        """
class Meter:
    def __init__(self): self.sum = 0; self.val = None
    def update(self, v, n=1):
        self.val = v
        self.sum += v * n
m = Meter()
for x, y in loader:
    loss = criterion(model(x), y)
    m.update(loss.item, x.size(0))
""",
        [("m.val", 9)],
    ),
    "kept by an object of the user's": (
        """
class Log:
    def __init__(self): self.rows = []
    def add(self, **kw): self.rows.append(kw)
log = Log()
for x, y in loader:
    loss = criterion(model(x), y)
    log.add(loss=loss.item, n=x.size(0))
""",
        [("log.rows", 7)],
    ),
    "returned": (
        """
def step(x, y):
    loss = criterion(model(x), y)
    return loss.item
losses = [step(x, y) for x, y in loader]
""",
        [("losses", 3)],
    ),
    "bare function of torch": (
        """
torch.cuda.empty_cache
z = 1
""",
        [("torch.cuda.empty_cache", 1)],
    ),
    "asserted": (
        """
x = loader[0][0]
assert torch.isfinite(x).all, "bad"
""",
        [("torch.isfinite(x).all", 2)],
    ),
    "comprehension inside a call": (
        """
a = np.mean([l.item for l in [torch.ones(()), torch.zeros(())]])
""",
        [("l.item", 1)],
    ),
    "handed to str.format": (
        """
text = "loss: {:.3f}".format(criterion(model(loader[0][0]), loader[0][1]).item)
""",
        [("criterion(model(loader[0][0]), loader[0][1]).item", 1)],
    ),
    "handed to load_state_dict": (
        """
model.load_state_dict(model.state_dict)
""",
        [("model.state_dict", 1)],
    ),
    "a module's own mode": (
        """
model = model.train

""",
        [("model", 1)],
    ),
    "bare eval in a function": (
        """
def run(net):
    net.eval
    with torch.no_grad():
        return net(loader[0][0])
o = run(model)
""",
        [("net.eval", 2)],
    ),
    "chained": (
        """
out = model(loader[0][0])
preds = out.detach.cpu().numpy()
""",
        [("out.detach", 2)],
    ),
    "attribute as model": (
        """
class P:
    def __init__(self, net):
        self.model = net.eval
    def __call__(self, x):
        return self.model(x)
p = P(nn.Sequential(nn.Linear(4, 2)))
y = p(torch.ones(1, 4))
""",
        [("p.model", 3)],
    ),
    "parameters of it": (
        """
net = nn.Linear(4, 2).train
opt = torch.optim.SGD(net.parameters(), lr=0.1)
""",
        [("net", 1)],
    ),
    "dataclass": (
        """
from dataclasses import dataclass
@dataclass
class Run:
    model: object
    def predict(self, x):
        return self.model(x)
net = nn.Linear(4, 2)
run = Run(model=net.eval)
y = run.predict(torch.ones(1, 4))
""",
        [("run.model", 8)],
    ),
    "function never called": (
        """
def fit(net, data, opt, steps=10):
    net.train
    for x, y in data:
        opt.zero_grad
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
""",
        [("net.train", 2), ("opt.zero_grad", 4)],
    ),
    "stored in never called": (
        """
def fit(net, data, opt, loss_fn):
    log = []
    for x, y in data:
        loss = loss_fn(net(x), y)
        loss.backward()
        opt.step()
        log.append(loss.item)
    return log
""",
        [("loss.item", 7)],
    ),
    "class without instance": (
        """
class Trainer:
    def __init__(self, net, opt):
        self.net, self.opt = net, opt
    def step(self, x, y):
        self.opt.zero_grad
        loss = self.net(x).sub(y).square().mean()
        loss.backward()
        self.opt.step()
""",
        [("self.opt.zero_grad", 5)],
    ),
    "sched step unknown": (
        """
def epoch(net, sched):
    for x, y in loader:
        net(x).sum().backward()
    sched.step
    return net
""",
        [("sched.step", 4)],
    ),
    "handed over by keyword, formatted inside": (
        """
class Board:
    def row(self, **values):
        return "{loss:.3f} at {step}".format(**values)
board = Board()
rows = [board.row(loss=criterion(model(x), y).item, step=1) for x, y in loader]
""",
        [("criterion(model(x), y).item", 5)],
    ),
    "a class imported by name": (
        """
from torch import inference_mode as quiet
def predict(x):
    with quiet:
        return model(x).argmax(1)
classes = predict(loader[0][0])
""",
        [("quiet", 3)],
    ),
    "a function imported by name": (
        """
from torch.cuda import is_available
device = "cuda" if is_available else "cpu"
""",
        [("is_available", 2)],
    ),
    "entered by a stack": (
        """
from contextlib import ExitStack
with ExitStack() as stack:
    stack.enter_context(torch.no_grad)
    out = model(loader[0][0])
""",
        [("torch.no_grad", 3)],
    ),
    "in place on a parameter that was computed with": (
        """
def scaled(v, eps=1e-3):
    v = (v - v.min()) / (v.max() + eps)
    v = v[1:]
    v.neg_
    return v
r = scaled(torch.rand(5))
""",
        [("v.neg_", 4)],
    ),
    "rounded in a method called add": (
        """
class Meter:
    def __init__(self): self.rows = []
    def add(self, **values): self.rows.append({k: round(v, 3) for k, v in values.items()})
m = Meter()
for x, y in loader:
    m.add(loss=criterion(model(x), y).item)
""",
        [("criterion(model(x), y).item", 6)],
    ),
}

CORRECT = {
    "getters by keyword": """
def report(**getters): return {k: get() for k, get in getters.items()}
loss = criterion(model(loader[0][0]), loader[0][1])
values = report(loss=loss.item, size=loss.dim)
""",
    "a function called log that calls": """
def log(read, *args, **more): return read(*args, **more)
total = log(torch.ones(3).sum)
""",
    "functions and classes imported by name": """
from torch import Tensor, no_grad, relu, tanh
from torch.nn import Linear, ReLU
acts = {"relu": relu, "tanh": tanh}
best = relu or tanh
def make(layer=Linear, act=ReLU): return nn.Sequential(layer(4, 3), act())
net = make()
same = type(model) is Linear or isinstance(model, (Linear, ReLU))
y: Tensor | None = acts["relu"](torch.ones(3))
with no_grad():
    z = net(loader[0][0])
""",
    "functions repeated and joined in lists": """
acts = [torch.relu] * 3
acts = acts + [torch.tanh]
acts += [torch.sigmoid, nn.ReLU]
pairs = [(torch.sin, torch.cos)] * 2 + [(torch.exp, torch.log)]
x = acts[0](torch.randn(4))
""",
    "aliases that are called": """
step = optimizer.step
zero = optimizer.zero_grad
zero(); step()
""",
    "table of callbacks": """
hooks = {"step": optimizer.step, "zero": optimizer.zero_grad}
for k in hooks: hooks[k]()
""",
    "list of callbacks": """
callbacks = [model.train, model.eval]
for c in callbacks: c()
""",
    "table of reductions": """
x = torch.randn(4)
reducers = {"mean": x.mean, "sum": x.sum, "max": x.max}
r = {k: f() for k, f in reducers.items()}
""",
    "handed to a timer": """
import timeit
t = timeit.timeit(optimizer.zero_grad, number=2)
""",
    "decorator without parentheses": """
@torch.no_grad
def ev(x): return model(x)
o = ev(loader[0][0])
""",
    "a tensor's method under another name": """
get = torch.ones(()).item
v = get() + 1
""",
    "kept by a wrapper": """
class Wrap:
    def __init__(self, opt): self.opt = opt; self.step = opt.step; self.zero_grad = opt.zero_grad
w = Wrap(optimizer)
w.zero_grad(); w.step()
""",
    "context manager under another name": """
import contextlib
ctx = torch.no_grad
with ctx():
    pass
""",
    "attributes that are no methods": """
x = torch.randn(3)
print(x.shape, x.dtype, x.T, x.is_cuda, x.requires_grad, x.grad_fn, x.data)
names = [n for n, p in model.named_parameters() if p.requires_grad]
ok = x.is_leaf and model.training
""",
    "list handed to a function that calls it": """
fns = [model.train, optimizer.zero_grad]
def run_all(fs):
    for f in fs: f()
run_all(fns)
""",
    "handed to an executor": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(1) as ex:
    f = ex.submit(torch.ones(()).item)
    v = f.result()
""",
    "plain attributes of the user's class": """
class C:
    item = 3
    mean = 0.5
    def size(self): return 2
c = C()
v = c.item + c.mean
t = f"{c.item}"
""",
    "plain attributes of a module": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = 0.5; self.std = 0.2
        self.fc = nn.Linear(4, 2)
        self.act = F.relu
    def forward(self, x): return self.act(self.fc((x - self.mean) / self.std))
n = Net()
o = n(loader[0][0])
z = n.mean * 2
""",
    "functions that functions of torch take": """
sched = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda e: 0.9 ** e)
out = torch.func.functional_call(model, dict(model.named_parameters()), loader[0][0])
g = torch.func.grad(lambda p: p.sum())(torch.ones(3))
""",
    "attributes of arrays": """
a = np.arange(4)
n = a.size + 1
b = a.T
""",
    "fields of a named tuple": """
from collections import namedtuple
P = namedtuple("P", "item count")
p = P(1, 2)
q = p.item + p.count
""",
    "list of samplers": """
d = torch.distributions.Normal(0., 1.)
m = d.mean + d.stddev
s = d.sample()
fns = [d.sample for _ in range(3)]
vals = [f() for f in fns]
""",
    "partial": """
import functools
f = functools.partial(torch.Tensor.mean, dim=0)
h = functools.partial(optimizer.zero_grad, set_to_none=True)
h()
""",
    "a getter": """
def get_getter(t):
    return t.item
g = get_getter(torch.ones(()))
v = g()
""",
    "pairs of names and methods": """
class Hist(dict):
    pass
ops = []
ops.append(("item", torch.ones(()).item))
r = [f() for n, f in ops]
""",
    "mock objects": """
import unittest.mock as mock
m = mock.MagicMock()
m.item
y = m.item
z = m.loss.item
""",
    "registered to run at the end": """
import atexit
atexit.register(torch.cuda.empty_cache)
sync = torch.cuda.synchronize if torch.cuda.is_available() else (lambda: None)
sync()
""",
    "readers called by function": """
watched = {"lr": scheduler.get_last_lr}
def log(readers):
    return {n: r() for n, r in readers.items()}
lines = []
for x, y in loader:
    loss = criterion(model(x), y)
    watched["loss"] = loss.detach().item
    lines.append(log(watched))
del watched, loss
""",
    "handed by keyword to a method": """
class Log:
    def row(self, get=None):
        return get()
log = Log()
loss = torch.ones(())
v = log.row(get=loss.item)
""",
    "callback list run by function": """
getters = []
for x, y in loader:
    getters.append(criterion(model(x), y).detach().item)
def run(fs):
    return [f() for f in fs]
vals = run(getters)
""",
    "eval kept and called": """
class Mode:
    def __init__(self, net):
        self.freeze = net.eval
        self.thaw = net.train
m = Mode(model)
m.freeze()
m.thaw(True)
""",
    "train with mode argument": """
set_mode = model.train
set_mode(False)
""",
    "own class with a step": """
class Env:
    @property
    def step(self):
        return 1
def play(env):
    n = env.step + 1
    return n
n = play(Env())
""",
    "unknown object attribute": """
def summary(run):
    a = run.step
    b = run.train, run.eval
    return a, b
""",
    "property with effect": """
class Lazy:
    @property
    def train(self):
        return 3
def use(l):
    l.train
    return l
""",
}


@pytest.mark.parametrize(("cell", "expected"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_method_where_its_result_was_meant(cell: str, expected: list[tuple[str, int | None]]) -> None:
    """The finding names the method, or the variable that holds it, and the line."""
    assert flags(look(SETUP, cell.removeprefix("\n"), only=["uncalled-method"]), "uncalled-method") == expected


@pytest.mark.parametrize(("cell", "expected"), MISTAKES.values(), ids=list(MISTAKES))
def test_the_fix_makes_the_cell_quiet(cell: str, expected: list[tuple[str, int | None]]) -> None:
    """With every fix applied, the cell has nothing left to report."""
    lines = cell.removeprefix("\n").split("\n")
    for finding in look(SETUP, "\n".join(lines), only=["uncalled-method"]).findings:
        assert finding.fix is not None
        assert finding.line is not None
        old = lines[finding.line - 1]
        lines[finding.line - 1] = old[: len(old) - len(old.lstrip())] + finding.fix.replacement

    assert flags(look(SETUP, "\n".join(lines), only=["uncalled-method"]), "uncalled-method") == []


@pytest.mark.parametrize("cell", CORRECT.values(), ids=list(CORRECT))
def test_a_method_that_is_there_to_be_called(cell: str) -> None:
    """Nothing is said about correct code, not even as a note."""
    report = look(SETUP, cell.removeprefix("\n"), only=["uncalled-method"])

    assert [str(finding) for finding in [*report.findings, *report.notes]] == []
    assert report.failures == ()


def test_the_last_line_may_be_there_to_be_looked_at() -> None:
    """The value of a cell's last expression is displayed; without a call it is a note, with a semicolon a warning."""
    shown = look(SETUP, "x = torch.ones(())\nx.item", only=["uncalled-method"])
    hidden = look(SETUP, "x = torch.ones(())\nx.item;", only=["uncalled-method"])

    assert ([f.subject for f in shown.findings], [f.subject for f in shown.notes]) == ([], ["x.item"])
    assert [f.subject for f in hidden.findings] == ["x.item"]


def test_a_line_with_two_mistakes_gets_both_parentheses() -> None:
    """Each of two findings on a line carries the whole right line."""
    cell = "loss, acc = torch.ones(()), torch.ones(())\nrow = {'loss': loss.item, 'acc': acc.item}"
    report = look(SETUP, cell, only=["uncalled-method"])

    assert {f.fix.replacement for f in report.findings if f.fix} == {"row = {'loss': loss.item(), 'acc': acc.item()}"}


def test_a_conversion_is_bound_too() -> None:
    """With the parentheses alone, the copy would be dropped."""
    report = look(SETUP, "x = torch.ones(3)\nx.half\ny = x", only=["uncalled-method"])

    assert [f.fix and f.fix.replacement for f in report.findings] == ["x = x.half()"]


def test_many_methods_in_one_list_are_one_finding() -> None:
    """A long list is counted, not repeated."""
    report = look(SETUP, "values = []\nfor i in range(40):\n    values.append(torch.ones(()).item)")

    assert [f.message.split(" of a")[0] for f in report.findings] == ["`values`: 40 elements are the method `item`"]


@pytest.mark.parametrize(
    ("model", "cost"),
    [
        ("nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))", "dropout stays in training mode"),
        ("nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5))", "dropout and batch norm stay in training mode"),
        ("nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0))", "the mode stays as it was"),
    ],
)
def test_a_bare_eval_speaks_of_the_layers_that_are_there(model: str, cost: str) -> None:
    """A model without dropout and batch norm is the same in both modes."""
    (finding,) = look(SETUP, f"net = {model}\nnet.eval\ny = 1").findings

    assert finding.message == f"`net.eval`: named but not called, so {cost}; write `eval()`"


def test_a_name_that_is_used_as_the_module() -> None:
    """`cuda` takes no tensor, so that the module was meant."""
    cell = "net = nn.Sequential(nn.Linear(4, 2))\nready = net.cuda\nout = ready(torch.ones(1, 4))"

    assert flags(look(SETUP, cell), "uncalled-method") == [("ready", 2)]
