"""How a write makes a value from its own last value: arithmetic, a growing container, a call, a comparison."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Literal

from torchmagic.source.gathering import comprehension_in, summed_in
from torchmagic.source.program import Program
from torchmagic.source.refs import ANY, Ref, Steps, bare_name, reads, ref_of
from torchmagic.source.writes import Write

Shape = Literal["sum", "container", "state", "best"]
"""`sum`: arithmetic with its own last value. `container`: a list or dict that grows. `state`: a call that is handed the
last value. `best`: kept when a comparison with the last value says so."""

_OVERWRITING = frozenset({"update"})
_KEEPS_EXTREME = frozenset({"min", "max", "minimum", "maximum"})
_ASKS_ONLY = frozenset({"shape", "size", "dim", "device", "dtype", "new_zeros", "new_ones", "new_full", "new_empty"})
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_READS_NUMBER = frozenset({"item", "detach", "data", "mean", "sum"})
_DEEPEST_ALIAS = 3


class Recurrence:
    """Reads the shapes of a program's writes, each once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._shapes: dict[Write, Shape | None] = {}
        self._cycles: dict[Write, set[str] | None] = {}

    def shape(self, write: Write) -> Shape | None:
        """Return how a write builds on its last value; None when it does not."""
        if write not in self._shapes:
            self._shapes[write] = self._find_shape(write)
        return self._shapes[write]

    def _find_shape(self, write: Write) -> Shape | None:
        value = write.value
        if value is None:
            return None
        if write.kind == "augment":
            return "container" if isinstance(value, (ast.List, ast.Tuple, ast.ListComp)) else "sum"
        if self.updates_entry(write):
            return _self_reading_shape(value, lambda node: _is_entry(node, write))
        if write.kind == "store":
            if compared_part(write) is not None:
                return "best"
            return None if write.how in _OVERWRITING else "container"
        if write.kind != "bind" or write.how != "=":
            return None
        if comprehension_in(value) is not None and write.position is None:
            return "container"
        if compared_part(write) is not None:
            return "best"
        if self.cycle(write) is None:
            return "sum" if summed_in(value) is not None and write.position is None else None
        return _self_reading_shape(value, lambda node: _same(node, write.target))

    def updates_entry(self, write: Write) -> bool:
        """Tell whether a store makes an entry of a container from the same entry: `d[k] = d.get(k, 0) + x`."""
        is_item = write.kind == "store" and write.how == "[]=" and write.value is not None
        return is_item and any(_is_entry(node, write) for node in ast.walk(write.value))  # type: ignore[arg-type]

    def cycle(self, write: Write) -> set[str] | None:
        """Return the names through which a new value is made from the last one.

        None when it is not made from itself; no names when it reads itself directly. The names are those bound in the
        same loop.
        """
        if write not in self._cycles:
            self._cycles[write] = self._find_cycle(write)
        return self._cycles[write]

    def _find_cycle(self, write: Write) -> set[str] | None:
        waiting: list[tuple[ast.expr, tuple[str, ...]]] = [] if write.value is None else [(write.value, ())]
        for _ in range(_DEEPEST_ALIAS):
            following: list[tuple[ast.expr, tuple[str, ...]]] = []
            for expression, through in waiting:
                for read in reads(expression):
                    if _reads_last(read, write.target):
                        return set(through)
                    if write.step.loops and read.root not in through:
                        following += [(value, (*through, read.root)) for value in self._bound_in(read.root, write)]
            waiting = following
        return None

    def _bound_in(self, name: str, write: Write) -> list[ast.expr]:
        scope = write.step.scope
        return [
            other.value
            for other in self._program.binds_of(name, scope.owner_of(name))
            if other.step.scope is scope
            and other.how == "="
            and other.value is not None
            and other.step.loops[-1:] == write.step.loops[-1:]
        ]


def _self_reading_shape(value: ast.expr, is_last: Callable[[ast.expr], bool]) -> Shape:
    """Tell arithmetic with the last value from a call that is handed it."""
    for way in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
        if isinstance(way, ast.Call) and bare_name(way.func) in _KEEPS_EXTREME:
            return "best"
    for node in ast.walk(value):
        if isinstance(node, ast.BinOp) and any(map(is_last, _operands(node))):
            listed = any(isinstance(side, (ast.List, ast.ListComp)) for side in _operands(node))
            return "container" if listed else "sum"
    return "state"


def _reads_last(read: Ref, target: Ref) -> bool:
    """Tell whether a path reads the target's own value, itself or by a method of it that makes something of it."""
    if read.root != target.root or read.steps[: len(target.steps)] != target.steps:
        return False
    return not any(kind == "attr" and key in _ASKS_ONLY for kind, key in read.steps[len(target.steps) :])


def _operands(node: ast.BinOp) -> list[ast.expr]:
    """Return the operands of nested arithmetic: `a * t + b` has `a`, `t` and `b`."""
    found: list[ast.expr] = []
    for side in (node.left, node.right):
        found += _operands(side) if isinstance(side, ast.BinOp) else [side]
    return found


def _same(node: ast.expr, ref: Ref) -> bool:
    return any(read == ref for read in reads(node)) and not isinstance(node, ast.Call)


def _is_entry(node: ast.AST, write: Write) -> bool:
    """Tell whether an expression is the entry that a store writes, by its index or by `get`."""
    key: ast.expr | None = None
    container: ast.expr | None = None
    if isinstance(node, ast.Subscript):
        container, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args and node.func.attr == "get":
        container, key = node.func.value, node.args[0]
    if key is None or write.key is None or ref_of(container) != write.target:
        return False
    return ast.dump(key) == ast.dump(write.key)


def compared_part(write: Write) -> Steps | None:
    """Return what a write's own comparison reads of its target, where it stands under one.

    Nothing more for `if loss < best: best = loss`, the key for `if loss < best["loss"]: best = {"loss": loss}` and for
    `best["loss"] = loss` or `best.update(loss=loss)` under it; None without a comparison.
    """
    for test in write.step.tests:
        for node in ast.walk(test):
            if isinstance(node, ast.Compare) and any(isinstance(op, _ORDERS) for op in node.ops):
                for read in reads(node):
                    more = read.steps[len(write.target.steps) :]
                    is_part = read == write.target + more and (write.kind != "store" or _stores_under(write, more))
                    if is_part and not any(key in _READS_NUMBER for _, key in more):
                        return more
    return None


def _stores_under(write: Write, part: Steps) -> bool:
    """Tell whether a store puts in the entry that a path leads to, by its key or as one of the entries it updates."""
    if not part or part[0][0] != "item" or part[0][1] is ANY:
        return False
    if write.key is not None:
        return isinstance(write.key, ast.Constant) and write.key.value == part[0][1]
    keys: list[object] = []
    if isinstance(write.value, ast.Dict):
        keys = [key.value for key in write.value.keys if isinstance(key, ast.Constant)]
    elif isinstance(write.value, ast.Call) and bare_name(write.value.func) == "dict":
        keys = [keyword.arg for keyword in write.value.keywords]
    return part[0][1] in keys
