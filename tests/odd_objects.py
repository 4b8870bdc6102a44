"""Objects that a look must leave alone: they note whatever is asked of them."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

TOUCHED: list[str] = []
"""What was called on objects that a look must leave alone."""


def _touch(name: str) -> Callable[..., Any]:
    def method(self, *args, **kwargs):
        TOUCHED.append(name)
        raise RuntimeError(name)

    return method


_SPECIAL = (
    "__getattribute__", "__getattr__", "__setattr__", "__eq__", "__bool__", "__len__", "__iter__", "__getitem__",
    "__contains__", "__call__", "__repr__", "__str__", "__format__", "__float__", "__int__", "__index__", "__array__",
    "__dir__", "__reduce_ex__", "__torch_function__",
)  # fmt: skip

Hostile = type("Hostile", (), {name: _touch(name) for name in _SPECIAL} | {"__class__": property(_touch("__class__"))})
_OF_CONTAINERS = ("__iter__", "__len__", "__getitem__", "__contains__", "__eq__", "__repr__", "__bool__")
HostileList = type("HostileList", (list,), {name: _touch(name) for name in _OF_CONTAINERS})
HostileDict = type(
    "HostileDict", (dict,), {name: _touch(name) for name in (*_OF_CONTAINERS, "__missing__", "items", "values")}
)


class Computing:
    """An object with a value, and with attributes that are computed."""

    computed = property(_touch("computed"))

    def __init__(self, value: Any) -> None:
        self.value = value

    __getattr__ = _touch("__getattr__")


class Subclass(torch.Tensor):
    """A tensor that wants to know of each operation."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        TOUCHED.append("__torch_function__")
        return super().__torch_function__(func, types, args, kwargs or {})


class Slots:
    __slots__ = ("unset", "value")

    def __init__(self, value: Any) -> None:
        self.value = value


class Holder(nn.Module):
    computed = property(_touch("computed"))

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.value = value


@dataclasses.dataclass
class Record:
    value: object
    other: object = None


Pair = collections.namedtuple("Pair", "left right")  # noqa: PYI024 (as people write it)
