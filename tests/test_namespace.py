"""The walk reaches what the user's variables hold, names it by its shortest path, and calls nothing."""

from __future__ import annotations

import collections
import dataclasses
import functools
import types
import unittest.mock
import weakref

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from torchmagic.namespace import walk
from torchmagic.namespace.resolve import MISSING, resolve

ONE = torch.ones(2)


class Plain:
    def __init__(self, value):
        self.value = value


class Slotted:
    __slots__ = ("never_set", "value")

    def __init__(self, value):
        self.value = value


@dataclasses.dataclass
class Data:
    value: object


Pair = collections.namedtuple("Pair", "left right")  # noqa: PYI024 (the kind people write)


def closure(value):
    def inner():
        return value

    return inner


def paths(**names):
    """Return the subjects of all tensors."""
    return [seen.subject for seen in walk(names).of_kind("tensor")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ONE, "x"),
        ([0, ONE], "x[1]"),
        ((ONE,), "x[0]"),
        ({"a": ONE}, "x['a']"),
        ({("a", 1): ONE}, "x[('a', 1)]"),
        ({Plain(1): ONE}, "x[<Plain object>]"),
        (collections.deque([ONE]), "x[0]"),
        (collections.OrderedDict(a=ONE), "x['a']"),
        (collections.defaultdict(list, a=[ONE]), "x['a'][0]"),
        (Pair(1, ONE), "x.right"),
        (Plain(ONE), "x.value"),
        (Slotted(ONE), "x.value"),
        (Data(ONE), "x.value"),
        (functools.partial(print, ONE), "x.args[0]"),
        (ONE.add, "x.__self__"),
        (np.array([None, ONE], dtype=object), "x[1]"),
        (types.SimpleNamespace(a=[{"b": ONE}]), "x.a[0]['b']"),
    ],
)
def test_a_tensor_is_reached_through(value, expected):
    """Containers, plain objects and bound methods are opened."""
    assert paths(x=value) == [expected]


def test_a_closure_of_the_users_function_is_opened():
    """A tensor that only a function's closure holds is found."""
    function = closure(ONE)
    function.__module__ = "__main__"

    assert paths(f=function) == ["f.__closure__[0].cell_contents"]


def test_modules_and_optimizers_are_named_as_people_name_them():
    """Parameters by attribute, layers by index, optimizer state as state_dict numbers it."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 1, bias=False), nn.BatchNorm1d(1, affine=False))
    opt = torch.optim.Adam(net.parameters())
    net(torch.randn(3, 2)).sum().backward()
    opt.step()

    assert paths(opt=opt, net=net) == [
        "net[0].weight",
        "net[1].running_mean",
        "net[1].running_var",
        "net[1].num_batches_tracked",
        "net[0].weight.grad",
        "opt.state[0]['step']",
        "opt.state[0]['exp_avg']",
        "opt.state[0]['exp_avg_sq']",
    ]


def test_the_shortest_path_names_an_object_and_the_others_are_kept():
    """One object has one subject, whatever the order of the variables."""
    (seen,) = walk({"deep": {"a": [ONE]}, "short": ONE}).of_kind("tensor")

    assert [place.text for place in seen.places] == ["short", "deep['a'][0]"]


def test_names_of_the_shell_and_modules_are_not_the_users():
    """IPython's history and imported modules are left out."""
    names = dict.fromkeys(["_", "__", "_1", "_i2", "Out", "In", "_oh", "exit", "__doc__"], ONE)

    assert paths(**names, torch=torch, _mine=ONE.clone(), _x1=ONE.clone()) == ["_mine", "_x1"]


def test_columns_of_a_table_are_read_without_a_copy():
    """A pandas table is opened by its columns of floats."""
    table = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [1, 2]})

    found = walk({"table": table, "series": table["a"]})

    assert [seen.subject for seen in found.of_kind("column")] == ["table['a']", "series.values"]


def test_numbers_that_are_not_finite_are_noted_at_each_place():
    """Floats have no identity: each place counts."""
    found = walk({"a": float("nan"), "b": [1.0, float("inf")], "c": np.float32("nan"), "d": 1.0})

    assert [place.text for _, place in found.numbers] == ["a", "c", "b[1]"]


class Hostile:
    reads = 0

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __len__(self):
        raise ValueError

    def __bool__(self):
        raise TypeError

    def __repr__(self):
        raise OSError

    def __eq__(self, other):
        raise ArithmeticError

    def __iter__(self):
        raise ArithmeticError

    __hash__ = None

    @property
    def __class__(self):
        raise RuntimeError("class")

    @property
    def tensor(self):
        type(self).reads += 1
        raise KeyError


class HostileDict(dict):
    def __iter__(self):
        raise RuntimeError

    def items(self):
        raise RuntimeError

    def __getitem__(self, key):
        raise RuntimeError


class OwnDict:
    @property
    def __dict__(self):
        raise RuntimeError("dict")


def test_hostile_objects_hide_nothing():
    """Objects whose every operation raises are passed over; what stands beside them is found."""
    hostile = Hostile()
    names = {"a": hostile, "b": [hostile, ONE], "c": HostileDict(t=ONE.clone()), "d": OwnDict(), "e": {"k": hostile}}

    assert paths(**names) == ["b[1]", "c['t']"]
    assert Hostile.reads == 0


def test_a_dead_weak_proxy_and_mocks_are_passed_over():
    """Proxies and mocks answer to anything; nothing is asked of them."""
    thing = Plain(1)
    proxy = weakref.proxy(thing)
    del thing
    mock = unittest.mock.MagicMock()

    assert paths(proxy=proxy, mock=mock, x=ONE) == ["x"]
    assert mock.mock_calls == []


def test_cycles_end():
    """A container that holds itself is visited once."""
    loop = {"weights": ONE}
    loop["self"] = loop
    ring = [loop]
    ring.append(ring)

    assert paths(ring=ring, loop=loop) == ["loop['weights']"]


def test_iterators_and_factories_are_left_as_they_are():
    """Generators, iterators and default factories are not touched."""
    numbers = (n for n in range(3))
    pairs = zip([1], [ONE], strict=True)
    lazy = collections.defaultdict(lambda: ONE)

    assert paths(numbers=numbers, pairs=pairs, lazy=lazy) == []
    assert (next(numbers), len(list(pairs)), len(lazy)) == (0, 1, 0)


def test_a_long_list_of_numbers_is_said_to_be_unread():
    """What is not looked at is said."""
    found = walk({"xs": [0.5] * 60_000, "x": ONE})

    assert found.skipped == ["`xs`: a list of 60,000 numbers or strings was not read"]
    assert [seen.subject for seen in found.of_kind("tensor")] == ["x"]


def test_the_walk_has_a_budget():
    """A namespace that does not end is cut, and the report says where."""
    found = walk({"xs": [torch.ones(1) for _ in range(9)]}, most_objects=3)

    assert found.skipped == ["stopped after 3 objects, at `xs[2]`; what lies beyond was not checked"]


def test_the_gradient_of_a_value_is_not_asked_for(recwarn):
    """Asking a non-leaf tensor for its gradient would warn."""
    leaf = torch.ones(2, requires_grad=True)
    value = leaf * 2
    value.sum().backward()

    assert paths(value=value, leaf=leaf) == ["value", "leaf", "leaf.grad"]
    assert len(recwarn) == 0


def test_a_fake_tensor_is_not_asked_for_its_memory(recwarn):
    """Asking it would warn."""
    fake = torch._subclasses.FakeTensorMode().from_tensor(torch.ones(2))

    assert walk({"fake": fake}).storage_bytes() == 0
    assert len(recwarn) == 0


def test_bytes_count_each_storage_once():
    """Views and arrays that share memory add nothing."""
    base = torch.zeros(10)
    array = np.zeros(4)
    found = walk({"a": base, "b": base[2:], "c": base.T if base.dim() > 1 else base.view(2, 5), "d": array,
                  "e": torch.from_numpy(array), "f": array[1:]})  # fmt: skip

    assert found.storage_bytes() == 40 + 32


@pytest.mark.parametrize(
    ("root", "steps", "expected"),
    [
        ("net", [("item", 0), ("attr", "bias")], "parameter"),
        ("data", [("item", "x")], "tensor"),
        ("data", [("item", "nothing")], None),
        ("plain", [("attr", "value")], "tensor"),
        ("plain", [("attr", "computed")], None),
        ("nothing", [], None),
        ("hostile", [("attr", "tensor")], None),
    ],
)
def test_a_written_path_is_followed_without_a_call(root, steps, expected):
    """Attributes and items are looked up by hand; what only code could answer is missing."""
    net = nn.Sequential(nn.Linear(2, 2))
    names = {"net": net, "data": {"x": ONE}, "plain": Plain(ONE), "hostile": Hostile()}
    wanted = {"parameter": net[0].bias, "tensor": ONE, None: MISSING}

    assert resolve(names, root, steps) is wanted[expected]
