"""What a module reaches past its tables: tensors and layers in plain attributes, containers, objects and closures."""

from __future__ import annotations

import re
import sys
import types
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torchmagic.kinds import is_from_torch, kind_of_value
from torchmagic.namespace.children import module_internals, opener_for

_DEEPEST = 6
_MOST = 2_000
_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|meta|hpu|npu|xla)(:\d+)?")


@dataclass(frozen=True, eq=False)
class PlainPart:
    """A tensor or module that an attribute leads to.

    `inner` are the attributes of plain objects on the way and `holder` is the last of these objects; `keys` are the
    keys of the dicts on the way.
    """

    value: Any
    inner: tuple[str, ...] = ()
    holder: Any = None
    keys: tuple[Any, ...] = ()

    @property
    def is_kept_by_device(self) -> bool:
        """Whether a key on the way names a device, as in a cache that keeps one entry for each."""
        return any(_names_device(key) for key in self.keys)


def plain_attributes(module: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, value and owner of the attributes of a module, and of its classes, that no move reaches.

    What the instance hides of its classes is left out.
    """
    own = object.__getattribute__(module, "__dict__")
    for name, value in list(own.items()):
        if name not in module_internals():
            yield name, value, module
    hidden = set(own)
    for kind in type.__getattribute__(type(module), "__mro__"):
        if is_from_torch(kind):
            return
        for name, value in list(type.__getattribute__(kind, "__dict__").items()):
            if not name.startswith("__") and name not in hidden and not _is_code(value):
                hidden.add(name)
                yield name, value, kind


def _is_code(value: Any) -> bool:
    kind = type(value)
    return kind in (types.FunctionType, staticmethod, classmethod, property) or issubclass(kind, type)


def plain_parts(value: Any, names: Mapping[str, Any]) -> Iterator[PlainPart]:
    """Yield the tensors and modules that an attribute leads to, not what lies inside of these."""
    waiting: deque[tuple[PlainPart, int]] = deque([(PlainPart(value), 0)])
    known: set[int] = set()
    while waiting and len(known) < _MOST:
        part, depth = waiting.popleft()
        if id(part.value) in known:
            continue
        known.add(id(part.value))
        kind = kind_of_value(part.value)
        if kind in ("tensor", "module"):
            yield part
        elif kind is None and depth < _DEEPEST and not _is_closed(part.value):
            waiting += [(child, depth + 1) for child in _children(part, names)]


def _is_closed(value: Any) -> bool:
    """Tell whether something is a method, a class or a data set; a data set is read on the host."""
    kind = type(value)
    if kind in (types.MethodType, types.BuiltinFunctionType) or issubclass(kind, type):
        return True
    data = sys.modules.get("torch.utils.data")
    return data is not None and issubclass(kind, (data.Dataset, data.DataLoader, data.Sampler))


def _children(part: PlainPart, names: Mapping[str, Any]) -> Iterator[PlainPart]:
    opener = opener_for(type(part.value), names)
    is_dict, is_object = issubclass(type(part.value), dict), _has_named_fields(part.value)
    for value, _, role, key in opener(part.value) if opener is not None else ():
        if role == "attribute" and is_object:
            yield PlainPart(value, (*part.inner, key), part.value, part.keys)
        elif role in ("item", "attribute", "closure"):
            keys = (*part.keys, key) if is_dict else part.keys
            yield PlainPart(value, part.inner, part.holder, keys)


def _has_named_fields(value: Any) -> bool:
    """Tell whether the attributes of an object are those that the user's code reads."""
    return type(value).__module__ not in ("builtins", "functools", "collections")


def _names_device(key: Any) -> bool:
    kind = type(key)
    if kind is tuple:
        return any(_names_device(part) for part in key)
    if kind is str:
        return _DEVICE.fullmatch(key) is not None
    return kind.__module__ == "torch" and kind.__name__ == "device"
