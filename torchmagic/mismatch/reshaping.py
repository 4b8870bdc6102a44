"""view, reshape, permute and their like: another number of values, or dimensions that do not exist."""

from __future__ import annotations

import ast
import re
from math import prod

from torchmagic.findings import Fix
from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import Shape, listed
from torchmagic.source.edits import first_words, spelled

_SIZES = re.compile(r"shape '?\[([-\d, ]*)\]'? is invalid for input of size (\d+)")
_DIMENSION = re.compile(r"Dimension out of range \(expected to be in range of \[(-?\d+), (-?\d+)\], but got (-?\d+)\)")
_ORDER = re.compile(r"number of dimensions in the tensor input does not match")
_STRIDES = "view size is not compatible"


def reshaping(failure: Refusal) -> Explained | None:
    """Explain a rearrangement that the values of a tensor do not fill, or whose dimensions it does not have."""
    for node in failure.expressions:
        explained = _explain(failure, node) if isinstance(node, ast.Call) else None
        if explained is not None:
            return explained
    return None


def _explain(failure: Refusal, call: ast.Call) -> Explained | None:
    receiver = _receiver(failure, call)
    part = failure.part_of_node(receiver)
    if part is None:
        return None
    if (found := _DIMENSION.search(failure.text)) is not None:
        return _no_such_dimension(failure, part, *(int(number) for number in found.groups()))
    if failure.calls or not isinstance(call.func, ast.Attribute):
        return None
    name = call.func.attr
    if (found := _SIZES.search(failure.text)) is not None and name in ("view", "reshape"):
        wanted = tuple(int(size) for size in found.group(1).split(",") if size.strip())
        return _other_size(failure, part, wanted, call) if int(found.group(2)) == prod(part.shape) else None
    if failure.text.startswith(_STRIDES) and name == "view":
        return _not_contiguous(failure, part, call)
    if name == "expand" and "expanded size of the tensor" in failure.text:
        return _expanded(failure, part, call)
    if _ORDER.search(failure.text) and name == "permute":
        given = [failure.sizes.value(argument) for argument in call.args]
        number = len(given[0]) if len(given) == 1 and type(given[0]) is tuple else len(given)
        fact = f"{part.text} is {listed(part.shape)}, of {len(part.shape)} dimensions, and `permute` names {number}"
        return failure.explained(part, f"{fact}: it takes each of them once")
    return None


def _receiver(failure: Refusal, call: ast.Call) -> ast.expr | None:
    """Return the tensor that is rearranged: what the method belongs to, or the first argument of a torch function."""
    if isinstance(call.func, ast.Attribute) and failure.sizes.shape(call.func.value) is not None:
        return call.func.value
    return call.args[0] if call.args else None


def _other_size(failure: Refusal, part: Part, wanted: Shape, call: ast.Call) -> Explained:
    total, known = prod(part.shape), prod(size for size in wanted if size >= 0)
    held = f"{part.text} is {listed(part.shape)}, {total} values"
    need = f"{listed(wanted)} takes a multiple of {known}" if -1 in wanted else f"{listed(wanted)} takes {known}"
    fact = f"{held}, and {need}"
    rows = part.shape[0] if part.shape else 0
    if len(wanted) > 1 and rows and wanted[0] not in (-1, rows) and len(call.args) == len(wanted):
        rest = wanted[1:]
        fits = (
            rest.count(-1) == 1 and (total // rows) % abs(prod(rest)) == 0 if -1 in rest else prod(rest) * rows == total
        )
        if fits:
            first = call.args[0]
            text = failure.with_call(part, ".shape[0]")
            fact = f"{fact}: dimension 0 is {rows} here, not {wanted[0]}"
            return failure.explained(part, f"{fact}; write `{text}` for it", failure.fix(first, text))
    return failure.explained(part, fact)


def _not_contiguous(failure: Refusal, part: Part, call: ast.Call) -> Explained:
    function = call.func
    fact = f"{part.text} is {listed(part.shape)}, and its values do not lie one after the other, as after a transpose"
    message = f"{fact}; `view` copies nothing, `reshape` copies where it must"
    text = spelled(failure.source, function)
    fix: Fix | None = None
    if isinstance(function, ast.Attribute) and text.endswith("view"):
        fix = failure.fix(function, f"{text[: -len('view')]}reshape")
    return failure.explained(part, message, fix)


def _expanded(failure: Refusal, part: Part, call: ast.Call) -> Explained | None:
    given = [failure.sizes.value(argument) for argument in call.args]
    wanted = given[0] if len(given) == 1 and type(given[0]) is tuple else tuple(given)
    for back in range(1, min(len(part.shape), len(wanted)) + 1):
        size, asked = part.shape[-back], wanted[-back]
        if type(asked) is int and asked not in (-1, size) and size != 1:
            fact = f"{part.text} is {listed(part.shape)}: `expand` repeats dimensions of size 1"
            return failure.explained(part, f"{fact}, and dimension {len(part.shape) - back} is {size}, not {asked}")
    return None


def _no_such_dimension(failure: Refusal, part: Part, first: int, last: int, asked: int) -> Explained | None:
    size = len(part.shape)
    if last == size and first == -size - 1:
        fact = f"{part.text} is {listed(part.shape)}: a new dimension goes to one of 0 to {size}"
        return failure.explained(part, f"{fact} (or {first} to -1); {asked} was asked for")
    if -size <= asked < size:
        return None
    names = f"has the dimensions 0 to {size - 1} (or -{size} to -1)" if size > 1 else "has dimension 0 alone"
    names = "has no dimensions" if not size else names
    return failure.explained(part, f"{part.text} is {listed(part.shape)} and {names}; {asked} was asked for")


def unpacking(failure: Refusal) -> Explained | None:
    """Explain `batch, channels, height, width = x.shape` where the tensor has more or fewer dimensions."""
    found = re.search(r"values to unpack \(expected (\d+)", failure.text)
    step = failure.here.step.node
    if found is None or not isinstance(step, ast.Assign) or len(step.targets) != 1:
        return None
    target, source = step.targets[0], step.value
    owner = source.value if isinstance(source, ast.Attribute) and source.attr == "shape" else None
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr == "size":
        owner = source.func.value if not source.args and not source.keywords else None
    if owner is None and isinstance(target, (ast.Tuple, ast.List)):
        return _too_many_parts(failure, source, target)
    part = failure.part_of_node(owner)
    if part is None or not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) == len(part.shape):
        return None
    size, names = len(part.shape), " ".join(spelled(failure.source, target).split())
    dims = f"{size} dimension{'' if size == 1 else 's'}"
    fact = f"{part.text} is {listed(part.shape)}, of {dims}, and `{names}` takes {len(target.elts)}"
    if size + 1 == len(target.elts):
        return failure.explained(part, f"{fact}: is the batch missing? `{failure.with_call(part, '.unsqueeze(0)')}`")
    return failure.explained(part, fact)


def _too_many_parts(failure: Refusal, source: ast.expr, target: ast.Tuple | ast.List) -> Explained | None:
    """Explain `a, b = x.chunk(3)`, and the unpacking of a tensor into its rows."""
    value, names = failure.sizes.value(source), " ".join(spelled(failure.source, target).split())
    part = failure.part_of_node(source)
    if part is not None and part.shape and part.shape[0] != len(target.elts):
        fact = f"{part.text} is {listed(part.shape)}, which unpacks into {part.shape[0]} along dimension 0"
        return failure.explained(part, f"{fact}, and `{names}` takes {len(target.elts)}")
    owner = source.func.value if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) else None
    part = failure.part_of_node(owner)
    if part is None or type(value) is not tuple or len(value) == len(target.elts):
        return None
    text = first_words(failure.source, source)
    fact = f"{part.text} is {listed(part.shape)}: `{text}` gives {len(value)} tensors"
    return failure.explained(part, f"{fact}, and `{names}` takes {len(target.elts)}")
