"""cat, stack and the batches of a DataLoader: one of the tensors has other sizes than the others."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from typing import Any

from torchmagic.findings import Fix
from torchmagic.kinds import kind_of_value, name_of
from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import Shape, listed, shape_of
from torchmagic.source.edits import spelled

_SPEAKS = re.compile(
    r"Sizes of tensors must match except|stack expects each tensor|must have same number of dimensions"
)
_JOINS = frozenset({"cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack"})


def joining(failure: Refusal) -> Explained | None:
    """Explain tensors that cannot be joined."""
    if not _SPEAKS.search(failure.text):
        return None
    if failure.call_of("collate_tensor_fn") is not None or "in DataLoader worker" in failure.text:
        return _collated(failure)
    call = failure.call_node
    name = name_of(failure.sizes.live(call.func)) if call is not None else ""
    if call is None or name not in _JOINS or not call.args:
        return None
    parts = _parts(failure, call.args[0])
    dim = _dim(failure, call)
    odd = next((index for index, part in enumerate(parts) if _is_odd(parts[0], part, name, dim)), None)
    if odd is None:
        return None
    one, other = parts[0], parts[odd]
    about = other if other.path else one
    fact = f"{one.text} is {listed(one.shape)} and {other.text} {listed(other.shape)}"
    if name == "stack":
        return failure.explained(about, f"{fact}: `stack` takes tensors of one size{_pad(one.shape, other.shape)}")
    if len(one.shape) != len(other.shape):
        return _other_dims(failure, one, other, about, fact)
    wrong = next(d for d, (a, b) in enumerate(zip(one.shape, other.shape, strict=True)) if a != b and d != dim)
    joins = f": joined along dimension {dim}, all others must be the same, and dimension {wrong} is not"
    fits = [d for d in range(len(one.shape)) if all(not _differs(one.shape, p.shape, d) for p in parts)]
    if name in ("hstack", "vstack", "dstack") or len(fits) != 1:
        return failure.explained(about, fact + joins)
    fix = _with_dim(failure, call, fits[0])
    return failure.explained(about, f"{fact}{joins}; along dimension {fits[0]} they fit: `dim={fits[0]}`", fix)


def _other_dims(failure: Refusal, one: Part, other: Part, about: Part, fact: str) -> Explained:
    """Explain a row that is joined to a matrix."""
    start = f"{fact}: all need as many dimensions"
    shorter, longer = (one, other) if len(one.shape) < len(other.shape) else (other, one)
    if shorter.shape != longer.shape[1:]:
        return failure.explained(about, start)
    text = failure.with_call(shorter, ".unsqueeze(0)")
    return failure.explained(about, f"{start}; `{text}` makes it one row", failure.call_fix(shorter, ".unsqueeze(0)"))


def _collated(failure: Refusal) -> Explained | None:
    """Explain samples of a data set that do not stack into a batch."""
    sizes = _sample_sizes(failure)
    source, step = failure.source, failure.here.step.node
    loader = step.iter if isinstance(step, (ast.For, ast.AsyncFor)) else None
    found = [o for o in failure.facts.found.seen.values() if type(o.obj) is sys.modules["torch"].utils.data.DataLoader]
    path = found[0].subject if len(found) == 1 else ""
    if loader is not None and isinstance(loader, ast.Name):
        path = spelled(source, loader)
    if sizes is None or not path:
        return None
    one, other = sizes
    dims = [d for d, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]
    which = f", and dimension {dims[0]} differs" if dims and len(one) == len(other) else ""
    advice = "bring all to one size in the data set, or give the DataLoader a `collate_fn` that pads"
    fact = f"`{path}` stacks samples into a batch: one is {listed(one)}, another {listed(other)}{which}"
    return Explained(path, f"{fact}; {advice}")


def _sample_sizes(failure: Refusal) -> tuple[Shape, Shape] | None:
    """Return two sizes that differ: those of the samples, else those that torch tells."""
    call = failure.call_of("collate_tensor_fn")
    batch: Any = call.arguments.get("batch") if call is not None else None
    shapes = [shape_of(part) for part in batch] if type(batch) in (list, tuple) else []
    for shape in shapes[1:]:
        if shape is not None and shapes[0] is not None and shape != shapes[0]:
            return shapes[0], shape
    said = re.search(r"got \[([\d, ]*)\] at entry 0 and \[([\d, ]*)\]", failure.text)
    if said is None:
        return None
    one, other = (tuple(int(size) for size in text.split(",") if size.strip()) for text in said.groups())
    return one, other


def _parts(failure: Refusal, node: ast.expr) -> list[Part]:
    """Return the tensors that are joined: those written in a list, or those a list holds."""
    if isinstance(node, (ast.List, ast.Tuple)):
        parts = [failure.part_of_node(element) for element in node.elts]
        return [part for part in parts if part is not None] if all(parts) else []
    held, text = failure.sizes.live(node), " ".join(spelled(failure.source, node).split())
    if type(held) not in (list, tuple):
        return []
    return [p for index, value in enumerate(held) if (p := _element(failure, value, f"{text}[{index}]")) is not None]


def _element(failure: Refusal, value: Any, text: str) -> Part | None:
    part = failure.part_of_value(value) if kind_of_value(value) == "tensor" else None
    return Part(f"`{text}`", part.path, part.shape, None, value) if part is not None else None


def _dim(failure: Refusal, call: ast.Call) -> int:
    given = next((keyword.value for keyword in call.keywords if keyword.arg in ("dim", "axis")), None)
    given = call.args[1] if given is None and len(call.args) > 1 else given
    value = failure.sizes.value(given) if given is not None else None
    said = re.search(r"except in dimension (\d+)", failure.text)
    if said is not None:
        return int(said.group(1))
    return value if type(value) is int and value >= 0 else 0


def _is_odd(first: Part, part: Part, name: str, dim: int) -> bool:
    if name == "stack":
        return part.shape != first.shape
    return len(part.shape) != len(first.shape) or _differs(first.shape, part.shape, dim)


def _differs(one: Shape, other: Shape, dim: int) -> bool:
    """Tell whether two shapes differ anywhere but in one dimension."""
    return any(a != b for d, (a, b) in enumerate(zip(one, other, strict=False)) if d != dim)


def _with_dim(failure: Refusal, call: ast.Call, dim: int) -> Fix | None:
    """Write the call with another `dim`."""
    first = spelled(failure.source, call.args[0])
    if len(call.args) > 2 or any(keyword.arg not in ("dim", "axis") for keyword in call.keywords):
        return None
    text = f"{spelled(failure.source, call.func)}({first}, dim={dim})"
    return failure.fix(call, text, "Check that this is the dimension you mean to join along.")


def _pad(one: Shape, other: Shape) -> str:
    same_rest: Sequence[int] = one[1:]
    if len(one) == len(other) and same_rest == other[1:]:
        return "; rows of unequal length: `nn.utils.rnn.pad_sequence`"
    return ""
