"""Whatever is in a namespace, the look raises nothing, changes nothing, and says the same thing twice."""

from __future__ import annotations

import collections
import dataclasses
import os
import warnings

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from torch import nn

from torchmagic.checking import check, take_snapshot

EXAMPLES = int(os.environ.get("TORCHMAGIC_EXAMPLES", "300"))


@dataclasses.dataclass
class Record:
    value: object
    other: object = None


class Slots:
    __slots__ = ("unset", "value")

    def __init__(self, value):
        self.value = value


class Hostile:
    def __getattribute__(self, name):
        raise RuntimeError(name)

    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError


class HostileList(list):
    def __iter__(self):
        raise RuntimeError

    def __len__(self):
        raise RuntimeError


class Holder(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.value = value


numbers = st.sampled_from([0.0, 1.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e38])


@st.composite
def tensors(draw):
    """Make a tensor of one of many kinds."""
    base = torch.tensor(draw(st.lists(numbers, min_size=1, max_size=6)))
    kind = draw(st.integers(0, 19))
    makers = {
        0: lambda: base,
        1: lambda: base.clone().requires_grad_(),
        2: lambda: base.clone().requires_grad_() * 2,
        3: lambda: base[:1],
        4: lambda: base.expand(3, -1),
        5: base.half,
        6: base.bfloat16,
        7: lambda: base.to(torch.complex64),
        8: lambda: base.to("meta"),
        9: lambda: torch.empty(0),
        10: base.to_sparse,
        11: lambda: torch.arange(3),
        12: lambda: torch.tensor(True),
        13: lambda: nn.Parameter(base.clone()),
        14: lambda: torch.from_numpy(np.array([1.0, np.nan])),
        15: lambda: base.to(torch.float8_e5m2),
        16: lambda: torch.nested.nested_tensor([base, base]),
        17: lambda: base.view(-1, 1).t(),
        18: torch.inference_mode()(lambda: torch.ones(2)),
        19: lambda: base.double().sum(),
    }
    return makers[kind]()


@st.composite
def arrays(draw):
    """Make a numpy array of one of many kinds."""
    values = draw(st.lists(numbers, max_size=4))
    dtype = draw(st.sampled_from(["f4", "f8", "f2", "c8", "O", "M8[D]", "U3", "i4"]))
    return np.ones(len(values), dtype=dtype) if dtype in ("M8[D]", "U3", "i4") else np.array(values, dtype=dtype)


@st.composite
def modules(draw):
    """Make a module, trained or not."""
    module = draw(
        st.sampled_from(
            [
                lambda: nn.Linear(2, 2),
                lambda: nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)),
                lambda: nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)),
                lambda: nn.ModuleDict({"a b": nn.Linear(2, 2)}),
                lambda: nn.LazyLinear(2),
                lambda: nn.ParameterList([torch.ones(2)]),
                lambda: Holder(torch.ones(2)),
                lambda: Holder([nn.Linear(2, 2)]),
            ]
        )
    )()
    if draw(st.booleans()) and not isinstance(module, (nn.ModuleDict, nn.LazyLinear, nn.ParameterList, Holder)):
        optimizer = draw(st.sampled_from([torch.optim.SGD, torch.optim.Adam]))(module.parameters(), lr=0.1)
        module(torch.full((3, 2), draw(numbers))).sum().backward()
        optimizer.step()
        return [module, optimizer]
    return module


leaves = st.one_of(
    tensors(),
    arrays(),
    modules(),
    numbers,
    st.integers(),
    st.text(max_size=3),
    st.none(),
    st.builds(Hostile),
    st.sampled_from([torch, len, Record, Hostile]),
    st.builds(lambda t: t.item, tensors()),
)


def containers(children):
    """Wrap values in one of many containers."""
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.lists(children, max_size=3).map(collections.deque),
        st.lists(children, max_size=3).map(HostileList),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), children, max_size=3),
        st.builds(Record, children, children),
        st.builds(Slots, children),
        children.map(lambda value: collections.defaultdict(list, {"a": value})),
        children.map(lambda value: lambda: value),
        children.map(lambda value: [value] * 3),
    )


values = st.recursive(leaves, containers, max_leaves=8)
namespaces = st.dictionaries(st.sampled_from("abcdefgh"), values, max_size=5)

SOURCE = """
for x in a:
    b.append(x)
    c += x
    loss = f(x)
    loss.backward()
    d.step()
e = a
e[0] = 1
f.item
g.to("cpu")
h = a.numpy()
"""


def fingerprint(tensor):
    """Return everything about a tensor that a look could disturb."""
    with torch.inference_mode(False):
        version = None if tensor.is_inference() else tensor._version
    bits = None
    if tensor.layout is torch.strided and not tensor.is_nested and tensor.device.type == "cpu":
        bits = bytes(tensor.detach().clone().untyped_storage())
    gradient = id(tensor.grad) if tensor.is_leaf else None
    return id(tensor), version, tensor.requires_grad, gradient, bits


def live_tensors(value, depth=8):
    """Return the tensors of a namespace, found without the code under test."""
    if issubclass(type(value), torch.Tensor):
        return [value]
    if issubclass(type(value), nn.Module):
        return [t for t in (*value.parameters(), *value.buffers()) if type(t) in (torch.Tensor, nn.Parameter)]
    if issubclass(type(value), dict):
        parts = list(dict.values(value))
    elif issubclass(type(value), (list, tuple, collections.deque)):
        parts = list((list if issubclass(type(value), list) else type(value)).__iter__(value))
    elif type(value) in (Record, Slots):
        parts = [value.value]
    else:
        return []
    return [tensor for part in parts if depth for tensor in live_tensors(part, depth - 1)]


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)
@given(names=namespaces, with_source=st.booleans())
def test_a_look_raises_nothing_and_changes_nothing(names, with_source):
    """The report comes, no rule fails, everything is as it was, and a second look gives the same report."""
    source = SOURCE if with_source else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = live_tensors(names)
        before = [fingerprint(tensor) for tensor in known]
        settings_before = (torch.get_rng_state().sum().item(), torch.is_grad_enabled(), torch.get_default_dtype())
        snapshot = take_snapshot(names)
        first = check(names, source=source, before=snapshot, level="note")
        second = check(names, source=source, before=snapshot, level="note")
        after = [fingerprint(tensor) for tensor in known]

    assert (first.failures, second.failures) == ((), ())
    assert after == before
    assert settings_before == (torch.get_rng_state().sum().item(), torch.is_grad_enabled(), torch.get_default_dtype())
    assert [f.to_dict() for f in first.findings] == [f.to_dict() for f in second.findings]
    assert str(first)
    assert first._repr_mimebundle_()["text/html"]
