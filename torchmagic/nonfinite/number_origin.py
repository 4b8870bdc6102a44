"""Where a number in a list, a dict or an object comes from: from an operation, or written and read as it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.nonfinite.bad_values import BadValue
from torchmagic.source.definitions import Definition
from torchmagic.source.operations import call_name, hands_on, reads_text
from torchmagic.source.refs import ANY, Ref, Steps, ref_of

_FILLED = frozenset({"call", "backward", "step", "entry"})
_OF_ARGUMENTS = frozenset({"float", "int", "round", "abs", "max", "min", "sum", "complex"})
_COPIES = frozenset({"list", "tuple", "dict", "sorted", "reversed", "copy", "deepcopy", "deque", "defaultdict"})
_PAIRS = frozenset({"zip", "enumerate", "items"})
"""What gives elements away in tuples."""
_NUMERIC = frozenset({"np", "numpy", "torch", "F", "math"})
_DEEPEST = 16


def is_result(value: BadValue, key: str, definitions: set[Definition]) -> bool:
    """Tell whether the text shows the operation whose result is this number of the variable `key`."""
    links = value.place.chain[2 if "." in key else 1 :]
    rest: Steps = tuple(("item" if link.step.startswith("[") else "attr", link.key) for link in links)
    return any(
        _is_result(definition, more, _DEEPEST)
        for definition in definitions
        if (more := _left(definition, Ref(key.partition(".")[0]), (*_attribute(key), *rest))) is not None
    )


def _attribute(key: str) -> Steps:
    attribute = key.partition(".")[2]
    return (("attr", attribute),) if attribute else ()


def _left(definition: Definition, ref: Ref, rest: Steps) -> Steps | None:
    """Return what is left to follow of a path in what a definition of its root, or of an attribute of it, made."""
    if definition.key.partition(".")[0] != ref.root:
        return None
    steps, known = (*ref.steps, *rest), _attribute(definition.key)
    return steps[len(known) :] if steps[: len(known)] == known else None


def _is_result(definition: Definition, rest: Steps, depth: int) -> bool:
    """Tell whether what lies at `rest` in what a definition made is the result of an operation."""
    placed = definition.placed
    if definition.value is None or definition.how in _FILLED or depth <= 0 or len(placed) > len(rest):
        return False
    if any(mine != theirs and mine[1] is not ANY for mine, theirs in zip(placed, rest, strict=False)):
        return False
    rest = (*definition.taken, *rest[len(placed) :])
    return _part(definition.value, (("item", ANY), *rest) if definition.how == "for" else rest, definition, depth - 1)


def _part(node: ast.expr, rest: Steps, definition: Definition, depth: int) -> bool:
    """Tell whether the part of an expression's value at `rest` is the result of an operation."""
    if (ref := ref_of(node)) is not None:
        named = [(need, _left(need, ref, rest)) for need in definition.needs]
        if all(more is None for _, more in named):
            named = [(need, rest) for need in definition.needs]  # a parameter is kept under the caller's name
        return any(_is_result(need, more, depth) for need, more in named if more is not None)
    if isinstance(node, ast.Call):
        return _is_result_of_call(node, rest, definition, depth)
    if isinstance(node, ast.BinOp):
        joins = rest and isinstance(node.op, (ast.Add, ast.Mult))  # of lists
        return not joins or any(_part(side, rest, definition, depth) for side in (node.left, node.right))
    return any(_part(part, more, definition, depth) for part, more in _parts(node, rest))


def _is_result_of_call(node: ast.Call, rest: Steps, definition: Definition, depth: int) -> bool:
    name, function = call_name(node), node.func
    returned = [need for need in definition.needs if need.how == "return"]
    if (
        returned
        and (ref_of(function) or isinstance(function, ast.Attribute))
        and any(_is_result(need, rest, depth) for need in returned)
    ):
        return True
    if reads_text(node):
        return False
    if name in ("item", "tolist"):
        return True
    if isinstance(function, ast.Name) and (name in _OF_ARGUMENTS or (rest and name in _COPIES)):
        given = [(part, rest) for part in node.args]
        given += [(k.value, rest[1:]) for k in node.keywords if rest and name == "dict" and k.arg == rest[0][1]]
        return any(_part(part, more, definition, depth) for part, more in given)
    if rest and rest[0][0] == "attr" and isinstance(function, ast.Name):  # the fields of a dataclass, a named tuple
        given = [(k.value, rest[1:]) for k in node.keywords if k.arg == rest[0][1]]
        given += [(part, rest[1:]) for part in node.args if ref_of(part) is None]
        return any(_part(part, more, definition, depth) for part, more in given)
    if name in _PAIRS and len(rest) > 1:
        rest = (rest[0], *rest[2:])
    if hands_on(node):
        receiver = [function.value] if isinstance(function, ast.Attribute) else []
        return any(_part(part, rest, definition, depth) for part in [*receiver, *node.args])
    owner = ref_of(function)
    makes_array = owner is not None and owner.root in _NUMERIC and all(kind == "item" for kind, _ in rest)
    return not returned and (not rest or makes_array)


def _parts(node: ast.expr, rest: Steps) -> Iterator[tuple[ast.expr, Steps]]:
    """Yield the parts of an expression that may stand at `rest`, each with what is then left to follow."""
    if isinstance(node, ast.IfExp):
        yield from ((node.body, rest), (node.orelse, rest))
    elif isinstance(node, ast.BoolOp):
        yield from ((part, rest) for part in node.values)
    elif isinstance(node, (ast.UnaryOp, ast.Await)):
        yield (node.operand if isinstance(node, ast.UnaryOp) else node.value), rest
    elif rest:
        yield from ((part, more) for part, more in _elements(node, rest[0][1], rest))


def _elements(node: ast.expr, key: object, rest: Steps) -> Iterator[tuple[ast.expr, Steps]]:
    """Yield the elements of a display or comprehension that may stand at `key`."""
    if isinstance(node, ast.Dict):
        for name, part in zip(node.keys, node.values, strict=True):
            if name is None:
                yield part, rest
            elif not isinstance(name, ast.Constant) or name.value == key or key is ANY:
                yield part, rest[1:]
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        starred = any(isinstance(part, ast.Starred) for part in node.elts)
        known = type(key) is int and key < len(node.elts) and not starred
        yield from ((part, rest[1:]) for index, part in enumerate(node.elts) if not known or index == key)
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        yield node.elt, rest[1:]
    elif isinstance(node, ast.DictComp):
        yield node.value, rest[1:]
