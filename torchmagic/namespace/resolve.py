"""Follow a path such as `model.head.weight` through live objects, without calling anything of the user's."""

from __future__ import annotations

import collections
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any, Final

from torchmagic.namespace.children import class_attribute, object_state


class _Missing:
    """The path leads nowhere, or only by running the user's code."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


def resolve(names: Mapping[str, Any], root: str, steps: Sequence[tuple[str, Any]]) -> Any:
    """Return the object at the end of a path, or MISSING.

    Args:
        names: the variables.
        root: the variable the path starts from.
        steps: pairs `("attr", name)` and `("item", key)`.
    """
    obj = names.get(root, MISSING)
    for kind, key in steps:
        if obj is MISSING:
            break
        obj = get_attribute(obj, key) if kind == "attr" else get_item(obj, key)
    return obj


def get_attribute(obj: Any, name: str) -> Any:
    """Return a plain attribute, a module's parameter, buffer or child, or a method of a torch class; else MISSING."""
    kind = type(obj)
    torch = sys.modules.get("torch")
    if kind is types.ModuleType:
        return types.ModuleType.__getattribute__(obj, "__dict__").get(name, MISSING)
    if torch is not None and hasattr(torch, "nn"):
        if issubclass(kind, torch.Tensor):
            return _tensor_attribute(obj, name)
        if issubclass(kind, torch.nn.Module):
            state = object.__getattribute__(obj, "__dict__")
            for table in ("_parameters", "_buffers", "_modules"):
                held = state.get(table)
                if issubclass(type(held), dict) and dict.__contains__(held, name):
                    return dict.__getitem__(held, name)
    if issubclass(kind, type):
        return class_attribute(obj, name, MISSING)
    if issubclass(kind, tuple):
        fields = class_attribute(kind, "_fields", MISSING)
        if type(fields) is tuple and name in fields:
            return tuple.__getitem__(obj, fields.index(name))
    for key, value in object_state(obj):
        if key == name:
            return value
    found = class_attribute(kind, name, MISSING)
    if torch is not None and issubclass(kind, torch.nn.Module) and issubclass(type(found), torch.Tensor):
        return found
    return types.MethodType(found, obj) if type(found) is types.FunctionType else MISSING


def _tensor_attribute(tensor: Any, name: str) -> Any:
    if name == "grad":
        return tensor.grad if tensor.is_leaf or tensor.retains_grad else None
    if name in ("data", "T", "mT", "H", "real"):
        return tensor  # the same memory under another shape: close enough to name it
    method = class_attribute(type(tensor), name, MISSING)
    return getattr(tensor, name) if type(method) in (types.MethodDescriptorType, types.FunctionType) else MISSING


def get_item(obj: Any, key: Any) -> Any:
    """Return an element of a builtin container or of one of torch's containers of modules; else MISSING."""
    kind = type(obj)
    torch = sys.modules.get("torch")
    try:
        if issubclass(kind, dict):
            return dict.__getitem__(obj, key)
        if issubclass(kind, list):
            return list.__getitem__(obj, key)
        if issubclass(kind, tuple):
            return tuple.__getitem__(obj, key)
        if issubclass(kind, collections.deque):
            return collections.deque.__getitem__(obj, key)
        if torch is None or not hasattr(torch, "nn"):
            return MISSING
        if type(key) is int and issubclass(kind, (torch.nn.Sequential, torch.nn.ModuleList)):
            return list(object.__getattribute__(obj, "_modules").values())[key]
        if type(key) is str and issubclass(kind, torch.nn.ModuleDict):
            return object.__getattribute__(obj, "_modules")[key]
    except (KeyError, IndexError, TypeError):
        pass
    return MISSING
