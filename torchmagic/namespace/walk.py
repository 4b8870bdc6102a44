"""Visit everything the user's variables reach, breadth first, each object once, within a budget."""

from __future__ import annotations

import math
import re
import sys
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Literal

from torchmagic.namespace import children
from torchmagic.namespace.places import Place
from torchmagic.namespace.storage import Span, array_span, tensor_span

Kind = Literal["tensor", "array", "column", "module", "optimizer", "method", "function", "other"]

MOST_OBJECTS = 300_000
MOST_PLACES = 24

_SHELL_NAME = re.compile(r"_+|_i{0,3}|_i?\d+|_[doi]h|In|Out|exit|quit|get_ipython|open|__\w+__")


@dataclass(slots=True)
class Seen:
    """An object that was reached, and the places it was reached from, the shortest path first."""

    obj: Any
    kind: Kind
    places: list[Place]
    more_places: int = 0
    _span: Span | Literal["unread"] | None = field(default="unread", repr=False)

    @property
    def subject(self) -> str:
        """The path to name the object by."""
        return self.places[0].text

    @property
    def span(self) -> Span | None:
        """The memory of a tensor or array."""
        if self._span == "unread":
            self._span = tensor_span(self.obj) if self.kind == "tensor" else array_span(self.obj)
        return self._span


@dataclass
class Namespace:
    """Everything one walk reached. It holds the user's objects: drop it as soon as the report is made."""

    names: Mapping[str, Any]
    seen: dict[int, Seen] = field(default_factory=dict)
    numbers: list[tuple[float, Place]] = field(default_factory=list)
    """Python and numpy floats that are NaN or infinite; numbers have no identity, so each place counts."""
    skipped: list[str] = field(default_factory=list)

    def of_kind(self, *kinds: Kind) -> Iterator[Seen]:
        """Yield the objects of these kinds in the order of their paths' lengths."""
        return (seen for seen in self.seen.values() if seen.kind in kinds)

    def find(self, obj: Any) -> Seen | None:
        """Return what is known about a live object, by identity."""
        seen = self.seen.get(id(obj))
        return seen if seen is not None and seen.obj is obj else None

    def storage_bytes(self) -> int:
        """Return the bytes of all tensors and arrays, each allocation once."""
        whole: dict[tuple[str, int], int] = {}
        for seen in self.of_kind("tensor", "array"):
            if (span := seen.span) is not None:
                key = (span.device, span.storage_start)
                whole[key] = max(whole.get(key, 0), span.storage_bytes)
        return sum(whole.values())


_COST = {"group": 6, "state": 5, "closure": 4, "self": 3}
"""How many ordinary steps one of these is worth: `model[0].weight` is a better name than
`opt.param_groups[0]['params'][0]`."""


class _Queue:
    """Objects still to be visited, those with the cheapest path first, in the order they came."""

    def __init__(self) -> None:
        self._waiting: dict[int, deque[tuple[Any, Place]]] = {}

    def put(self, obj: Any, place: Place) -> None:
        cost = place.cost = _COST.get(place.role, 1) + (place.parent.cost if place.parent is not None else 0)
        alike = self._waiting.get(cost)
        if alike is None:
            alike = self._waiting[cost] = deque()
        alike.append((obj, place))

    def take(self) -> tuple[Any, Place] | None:
        if not self._waiting:
            return None
        cheapest = min(self._waiting)
        alike = self._waiting[cheapest]
        entry = alike.popleft()
        if not alike:
            del self._waiting[cheapest]
        return entry


def is_shell_name(name: str) -> bool:
    """Tell whether a variable is IPython's or Python's own, such as `Out`, `_1` or `__name__`."""
    return _SHELL_NAME.fullmatch(name) is not None


def walk(names: Mapping[str, Any], *, hidden: Collection[str] = (), most_objects: int = MOST_OBJECTS) -> Namespace:
    """Reach every tensor, array, module, optimizer and bound method from the user's variables.

    Args:
        names: variable names and values.
        hidden: names that are not the user's, beside those of IPython and imported modules.
        most_objects: the budget; where it ends, the walk is cut and says so.
    """
    found = Namespace(names)
    types: dict[type, _Type] = {}
    queue = _Queue()
    for name, value in list(names.items()):
        if type(name) is str and name not in hidden and not is_shell_name(name) and type(value) is not ModuleType:
            queue.put(value, Place(None, name, "name", name, names))
    while (entry := queue.take()) is not None:
        obj, place = entry
        about = types.get(type(obj))
        if about is None:
            about = types[type(obj)] = _about(type(obj), names)
        if about.is_number:
            if not math.isfinite(obj):
                found.numbers.append((float(obj), place))
            continue
        if about.is_atom:
            continue
        known = found.seen.get(id(obj))
        if known is not None:
            if len(known.places) < MOST_PLACES:
                known.places.append(place)
            else:
                known.more_places += 1
            continue
        if len(found.seen) >= most_objects:
            found.skipped.append(
                f"stopped after {most_objects:,} objects, at `{place.text}`; what lies beyond was not checked"
            )
            break
        found.seen[id(obj)] = Seen(obj, "column" if place.role == "column" else about.kind, [place])
        if type(obj) is list and children.long_numbers(obj):
            found.skipped.append(f"`{place.text}`: a list of {list.__len__(obj):,} numbers or strings was not read")
            continue
        try:
            _open(obj, place, about, queue)
        except Exception as problem:  # one odd object must not hide the rest
            found.skipped.append(f"`{place.text}` could not be opened: {type(problem).__name__}")
    return found


def _open(obj: Any, place: Place, about: _Type, queue: _Queue) -> None:
    if about.kind == "tensor":
        gradient = _gradient(obj)
        if gradient is not None:
            queue.put(gradient, Place(place, ".grad", "grad", "grad", obj))
    elif about.opener is not None:
        for value, step, role, key in about.opener(obj):
            queue.put(value, Place(place, step, role, key, obj))


@dataclass(frozen=True)
class _Type:
    """What the walk has to know about all objects of one type."""

    kind: Kind
    is_number: bool
    is_atom: bool
    opener: children.Opener | None


def _about(kind_of: type, names: Mapping[str, Any]) -> _Type:
    is_atom = kind_of in children.ATOMS
    is_number = kind_of is float or (not is_atom and _is_numpy_float(kind_of))
    return _Type(_kind(kind_of), is_number, is_atom, children.opener_for(kind_of, names))


def _kind(kind_of: type) -> Kind:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and hasattr(torch, "Tensor"):
        if issubclass(kind_of, torch.Tensor):
            return "tensor"
        if issubclass(kind_of, torch.nn.Module):
            return "module"
        if issubclass(kind_of, torch.optim.Optimizer):
            return "optimizer"
    if numpy is not None and hasattr(numpy, "ndarray") and issubclass(kind_of, numpy.ndarray):
        return "array"
    if kind_of is MethodType or kind_of is BuiltinFunctionType:
        return "method"
    return "function" if kind_of is FunctionType else "other"


def _is_numpy_float(kind: type) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and hasattr(numpy, "floating") and issubclass(kind, numpy.floating)


def _gradient(tensor: Any) -> Any:
    """Return a tensor's gradient; asking a non-leaf for it would warn."""
    return tensor.grad if tensor.is_leaf or tensor.retains_grad else None
