"""Which bad values the text deals with: it asks after them, fills them, drops them, or goes on with finite ones."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from torchmagic.namespace.resolve import MISSING
from torchmagic.nonfinite.poison import Node, Poison
from torchmagic.source import Ref, ref_of
from torchmagic.source.definitions import GRAD, Definition
from torchmagic.source.operations import GRADIENTS, call_name, handled_names
from torchmagic.values import count_array, count_tensor

_TAKE_APART = frozenset({"split", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit"})
_MOST_DROPPED = 16


class Taming:
    """Judges the nodes of a poison graph by what the text does with them."""

    def __init__(self, poison: Poison) -> None:
        self._poison, self._facts = poison, poison.facts

    @cached_property
    def handled(self) -> set[str]:
        """The variables whose bad values the text deals with."""
        program = self._facts.program
        steps = program.steps if program is not None else ()
        return handled_names(expression for step in steps for expression in step.own_expressions())

    def is_tamed(self, node: Node) -> bool:
        """Tell whether the text deals with the bad values, so that what was made from them is finite."""
        flow = self._poison.flow
        if any(
            node in other.sources
            for other in self._poison.nodes.values()
            if other is not node and not other.has("gradient")
        ):
            return False
        if self.is_handled(node) or (flow is not None and node.key in flow.losses and GRADIENTS in self.handled):
            return True
        users = (user for user in self._poison.finite_users(node) if not self._takes_a_part(user, node))
        return any(self._holds_floats(user) for user in users)

    def is_handled(self, node: Node) -> bool:
        """Tell whether the text asks after the bad values, fills them, drops them or leaves them out."""
        flow = self._poison.flow
        asked = flow is not None and bool(node.definitions & flow.asked)
        return asked or node.key.partition(".")[0] in self.handled

    def _holds_floats(self, definition: Definition) -> bool:
        root, _, attribute = definition.key.removesuffix(GRAD).partition(".")
        value = self._facts.value(Ref(root, (("attr", attribute),) if attribute else ()))
        if value is MISSING:
            return False
        kind = type(value)
        if issubclass(kind, sys.modules["torch"].Tensor):
            return bool(value.is_floating_point() or value.is_complex())
        dtype = getattr(value, "dtype", None) if kind.__module__.partition(".")[0] in ("numpy", "pandas") else None
        return kind is float or kind.__name__ == "DataFrame" or getattr(dtype, "kind", "") == "f"

    def _takes_a_part(self, definition: Definition, node: Node) -> bool:
        """Tell whether all that a definition takes of a node are parts, `out[0]`, that happen to be finite.

        The whole without its bad first or last rows, as a difference needs it, is more than such a part.
        """
        if not definition.needs & node.definitions or definition.value is None:
            return False
        if definition.taken and any(
            isinstance(part, ast.Call) and call_name(part) in _TAKE_APART for part in ast.walk(definition.value)
        ):
            return True
        uses = list(_uses(definition.value, node.key))
        return bool(uses) and all(index is not None and self._is_part(index, node) for index in uses)

    def _is_part(self, index: ast.expr, node: Node) -> bool:
        return _narrows(index) and self._is_fixed(index) and not _drops_bad_ends(index, node)

    def _is_fixed(self, index: ast.expr) -> bool:
        """Tell whether an index is made of numbers and slices: `0`, `:, -1`, `i`, and not a mask or a permutation."""
        if isinstance(index, ast.Tuple):
            return all(map(self._is_fixed, index.elts))
        if isinstance(index, ast.Slice):
            return all(part is None or self._is_fixed(part) for part in (index.lower, index.upper, index.step))
        if isinstance(index, ast.UnaryOp):
            return self._is_fixed(index.operand) and isinstance(index.op, ast.USub)
        ref = ref_of(index)
        return isinstance(index, ast.Constant) or (ref is not None and type(self._facts.value(ref)) is int)


def _narrows(index: ast.expr) -> bool:
    """Tell whether an index leaves something out, unlike `:, None`."""
    if isinstance(index, ast.Tuple):
        return any(map(_narrows, index.elts))
    if isinstance(index, ast.Slice):
        return index.lower is not None or index.upper is not None
    return not (isinstance(index, ast.Constant) and index.value in (None, ...))


def _uses(expression: ast.expr, key: str) -> Iterator[ast.expr | None]:
    """Yield the index of each use of a variable in an expression; None where it is used as a whole."""
    indexed = set()
    for part in ast.walk(expression):
        if isinstance(part, ast.Subscript) and (ref := ref_of(part.value)) is not None and str(ref) == key:
            indexed.add(id(part.value))
            yield part.slice
    for part in ast.walk(expression):
        if isinstance(part, (ast.Name, ast.Attribute)) and id(part) not in indexed and str(ref_of(part)) == key:
            yield None


def _drops_bad_ends(index: ast.expr, node: Node) -> bool:
    """Tell whether a slice, `1:` or `:-1`, drops rows that are all bad."""
    if not isinstance(index, ast.Slice) or len(node.values) != 1 or index.step is not None:
        return False
    lower, upper = _number(index.lower), _number(index.upper)
    obj: Any = node.values[0].obj
    dropped = range(lower) if upper is None and lower else range(upper or 0, 0) if lower is None else range(0)
    size = len(obj) if getattr(obj, "ndim", 0) else 0
    count = count_tensor if issubclass(type(obj), sys.modules["torch"].Tensor) else count_array
    return 0 < len(dropped) <= min(size, _MOST_DROPPED) and all(
        count(obj[row : row + 1 or None]) is not None for row in dropped
    )


def _number(node: ast.expr | None) -> int | None:
    try:
        number = ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError):
        return None
    return number if type(number) is int else None
