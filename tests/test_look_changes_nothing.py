"""Looking changes nothing: no value, gradient, counter, random state, filter or lifetime."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch
from torch import nn

from tests.fingerprints import global_state
from tests.looking import look
from torchmagic.checking import Memory, check, take_snapshot
from torchmagic.namespace import paused_collector

CELL = """
total = 0.0
for _ in range(3):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    total += loss
bad = torch.tensor([1.0, float("nan")]) * 2
shared = torch.from_numpy(array)
array[0] = 7
kept = model.state_dict()
optimizer.step()
"""


def training():
    """Return variables with a mistake of every kind, and the cell that made them."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    names = {
        "torch": torch,
        "model": model,
        "optimizer": torch.optim.Adam(model.parameters()),
        "x": torch.randn(5, 3),
        "array": np.zeros(4, dtype=np.float32),
    }
    exec(compile(CELL, "<cell>", "exec"), names)
    return names


def state(names):
    """Return everything about the tensors and arrays that a look could disturb."""
    model, optimizer = names["model"], names["optimizer"]
    tensors = [*model.parameters(), *model.buffers(), names["bad"], names["total"]]
    tensors += [tensor for values in optimizer.state.values() for tensor in values.values()]
    bits = [(t.detach().numpy().tobytes(), t._version, t.requires_grad, t.grad_fn is None, id(t)) for t in tensors]
    return bits + [(p.grad.numpy().tobytes(), p.grad._version, id(p.grad)) for p in model.parameters()]


@pytest.mark.parametrize("memory", [None, Memory()], ids=["once", "on"])
def test_values_gradients_and_counters_stay(memory):
    """Every bit, gradient and version counter is as it was."""
    names = training()
    before = state(names)
    report = check(names, source=CELL, filename="<cell>", memory=memory)
    check(names, source=CELL, filename="<cell>", memory=memory)

    assert report.failures == ()
    assert report.findings != ()
    assert state(names) == before
    assert names["array"].tolist() == [7.0, 0.0, 0.0, 0.0]


def test_global_state_stays():
    """Random states, warning filters, default dtype and device, gradient mode and threads are as they were."""
    names = training()
    before = global_state()
    check(names, source=CELL, filename="<cell>", before=take_snapshot(names))

    assert global_state() == before


def test_no_warning_is_raised(recwarn):
    """The look is silent."""
    check(training(), source=CELL, filename="<cell>")

    assert [str(warning.message) for warning in recwarn] == []


def test_the_collector_rests_during_a_look():
    """It would run finalizers of the user's in the middle of it; where it was off, it stays off."""
    with paused_collector():
        inside = gc.isenabled()
    after = gc.isenabled()
    gc.disable()
    with paused_collector():
        pass
    left_off = gc.isenabled()
    gc.enable()

    assert (inside, after, left_off) == (False, True, False)


def test_nothing_is_kept_alive(request):
    """When the user drops an object, it goes at once, whatever report or memory is left."""
    names = training()
    gc.collect()
    gc.disable()
    request.addfinalizer(gc.enable)
    memory = Memory()
    snapshot = take_snapshot(names)
    report = check(names, source=CELL, filename="<cell>", before=snapshot, memory=memory)
    gone = [weakref.ref(names[name]) for name in ("model", "optimizer", "x", "array", "bad", "total", "loss", "shared")]
    names.clear()

    assert [ref() for ref in gone] == [None] * 8
    assert report.findings != ()


def test_a_failed_cell_leaves_no_frame_behind():
    """The report holds no frame of the error's traceback."""
    names = {"torch": torch}
    cell = (
        "def f():\n    inside = torch.ones(3)\n    ref.append(weakref.ref(inside))\n    raise RuntimeError('no')\nf()\n"
    )
    names |= {"weakref": weakref, "ref": []}
    try:
        exec(compile(cell, "<failing>", "exec"), names)
    except RuntimeError as error:
        report = check(names, source=cell, filename="<failing>", error=error)
        del error
    gc.collect()

    assert names["ref"][0]() is None
    assert report.failures == ()


def test_no_mode_of_the_user_sees_the_look():
    """A dispatch mode that a cell left open gets none of the look's operations."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        seen = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Counting.seen += 1
            return func(*args, **(kwargs or {}))

    names = training()
    with Counting():
        before = Counting.seen
        report = check(names, source=CELL, filename="<cell>")

    assert Counting.seen == before
    assert report.failures == ()


def test_no_subclass_of_the_user_is_asked():
    """A tensor subclass with a __torch_function__ of its own is looked at from outside."""

    class Loud(torch.Tensor):
        calls = 0

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            Loud.calls += 1
            return super().__torch_function__(func, types, args, kwargs or {})

    loud = torch.tensor([1.0, float("nan")]).as_subclass(Loud)
    before = Loud.calls
    report = check({"loud": loud}, source="loud = 1\n")

    assert Loud.calls == before
    assert report.failures == ()


ODD = {
    "meta": lambda: torch.ones(3, device="meta"),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "compressed": lambda: torch.eye(3).to_sparse_csr(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "jagged": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
    "complex": lambda: torch.ones(2, dtype=torch.complex64).conj(),
    "empty": lambda: torch.empty(0, 3),
    "float8": lambda: torch.ones(2).to(torch.float8_e4m3fn),
    "expanded": lambda: torch.ones(1).expand(10**9),
    "inference": lambda: torch.inference_mode()(torch.ones)(3),
    "uninitialized": lambda: nn.LazyLinear(3),
    "fake": lambda: torch._subclasses.FakeTensorMode().from_tensor(torch.ones(2)),
    "numbers": lambda: [0.5] * 1_000_000,
    "structured": lambda: np.array([(1, 2.0)], dtype=[("id", "i4"), ("score", "f4")]),
    "dates": lambda: np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"),
    "masked": lambda: np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    "readonly": lambda: np.frombuffer(b"\0\0\0\0", dtype=np.float32),
    "float16": lambda: np.ones(3, dtype=np.float16),
    "longdouble": lambda: np.ones(3, dtype=np.longdouble),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_odd_objects_get_nothing_said(make):
    """Every kind of tensor and array is looked at without a failure, and nothing is wrong with it."""
    report = check({"odd": make(), "holder": {"again": [make()]}}, source="odd = make()\n")

    assert (report.failures, report.findings, len(report.to_dict()["skipped"]) <= 2) == ((), (), True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": ["grad-histry"]}, "no rule named 'grad-histry'; did you mean grad-history?"),
        ({"level": "fatal"}, "no level named 'fatal'; the levels are note, warning, error"),
        ({"device": "gpu"}, "no device named 'gpu'; such as 'cpu', 'cuda' or 'cuda:1' is meant"),
    ],
)
def test_wrong_options_get_one_sentence(options, message):
    """What does not exist is named, with what does."""
    with pytest.raises(ValueError) as caught:
        check({}, **options)

    assert str(caught.value) == message


def test_a_text_that_does_not_parse_takes_away_only_the_lines():
    """The live objects are checked all the same."""
    report = check({"x": torch.ones(2)}, source="x = = 1\n")

    assert (report.failures, report.looked.tensors) == ((), 1)


def test_a_comment_silences_its_line():
    """The comment at the end of a line silences the named rule, and no other."""
    cell = "import torch\nw = torch.ones(2)\nw.cpu()  # torchcheck: ignore[{}]\nw2 = 1\n"

    assert [f.rule for f in look(cell.format("discarded-transfer")).findings] == []
    assert look(cell.format("discarded-transfer")).silenced == 1
    assert [f.rule for f in look(cell.format("non-finite")).findings] == ["discarded-transfer"]


def test_options_choose_rules():
    """`only` and `ignore` take rule names."""
    cell = "import torch\nw = torch.ones(2)\nw.cpu()\nw2 = 1\n"

    assert len(look(cell, only=["non-finite"])) == 0
    assert len(look(cell, ignore=["discarded-transfer"])) == 0
    assert len(look(cell, only=["discarded-transfer"])) == 1


def test_a_misspelt_comment_is_told():
    """A comment that silences no rule there is does not go by in silence."""
    report = look("import torch\nw = torch.ones(2)\nw = w * 2  # torchcheck: ignore[gradhistory]\n")

    assert report.skipped == ("the comment in line 3: no rule named 'gradhistory'; did you mean grad-history?",)


def test_rules_that_judge_text_say_when_they_have_none():
    """Silence for want of a text is not taken for a clean bill."""
    report = check({"x": torch.ones(2)})

    assert report.skipped == (
        "discarded-transfer, grad-history, shared-memory judge the text of a cell; run it under `%%torchcheck`",
    )


def test_a_failed_cell_is_not_called_right():
    """Under a traceback the report does not say that nothing is wrong."""
    report = look("import torch\nx = torch.ones(2)\nraise ValueError('stop')\n")

    assert str(report).startswith("torchcheck: no mistake found behind the error · 1 tensor (8 bytes) · ")


def test_no_rule_left_is_an_error():
    """Choosing a rule and leaving it out leaves nothing to run."""
    with pytest.raises(ValueError) as caught:
        check({}, only=["non-finite"], ignore=["non-finite"])

    assert str(caught.value) == "no rule is left to run"
