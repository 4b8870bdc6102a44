"""Where a program gives a carried value a fresh start, or takes its history away."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cached_property

from torchmagic.source.program import Program
from torchmagic.source.recurrence import Recurrence
from torchmagic.source.refs import Ref, bare_name
from torchmagic.source.scopes import Loop, Scope
from torchmagic.source.writes import Write

_DETACHING = frozenset({"detach", "data", "item", "numpy", "tolist", "detach_"})
_CUTTING = frozenset({"detach", "data", "detach_"})


class Resets:
    """Finds the writes that reset a target, by the names they write."""

    def __init__(self, program: Program, recurrence: Recurrence) -> None:
        self._program = program
        self._recurrence = recurrence

    def loops(self, write: Write) -> set[Loop]:
        """Return the loops in which something resets the target of a write.

        Where a value is made from its last one by way of other names, a fresh value of those cuts the history too.
        """
        scope = write.step.scope
        loops = self._loops_of(write.target, scope, write)
        between = self._recurrence.cycle(write) if write.kind == "bind" else None
        for name in between or ():
            loops |= self._loops_of(Ref(name), scope, write)
        return loops

    def _loops_of(self, target: Ref, scope: Scope, write: Write) -> set[Loop]:
        loops: set[Loop] = set()
        known = [(target, scope), *((spelled, None) for spelled in self._program.spellings(target, scope))]
        for ref, place in known:
            for reset, other in self._by_root.get((ref.root, place), ()):
                if other is write or not _is_prefix(reset, ref):
                    continue
                for context in self._program.contexts(other.step):
                    loops.update(context.loops)
                if other.how == "for" and isinstance(other.step.node, (ast.For, ast.AsyncFor)):
                    loops.add(other.step.node)
        return loops

    @cached_property
    def _by_root(self) -> dict[tuple[str, Scope | None], list[tuple[Ref, Write]]]:
        """The resetting writes by the root of their target, as written in its scope and as the top level spells it."""
        table: dict[tuple[str, Scope | None], list[tuple[Ref, Write]]] = defaultdict(list)
        for other in self._program.writes:
            if self._may_reset(other):
                scope = other.step.scope
                table[(other.target.root, scope)].append((other.target, other))
                for spelled in self._program.spellings(other.target, scope):
                    table[(spelled.root, None)].append((spelled, other))
        return dict(table)

    def _may_reset(self, other: Write) -> bool:
        if other.kind == "clear":
            return True
        if other.kind == "inplace":
            return other.how in ("detach_", "zero_")
        if other.kind != "bind":
            return False
        if other.how == "for" or (other.value is not None and self._detaches(other.value)):
            return True
        return self._recurrence.shape(other) not in ("sum", "state", "best")

    def _detaches(self, value: ast.expr) -> bool:
        """Tell whether an expression takes history away itself, or by a function of the program that does."""
        called = set()
        for node in ast.walk(value):
            if isinstance(node, ast.Attribute) and node.attr in _DETACHING:
                return True
            if isinstance(node, ast.Call):
                called.add(bare_name(node.func))
        return bool(called & self._cutting_functions)

    @cached_property
    def _cutting_functions(self) -> set[str]:
        """The names of the program's functions that take history away; a module's own `forward` is another matter."""
        return {
            scope.name
            for scope in self._program.scopes
            if scope.name
            and not scope.name.startswith("__")
            and scope.name != "forward"
            and any(isinstance(node, ast.Attribute) and node.attr in _CUTTING for node in ast.walk(scope.node))
        }


def _is_prefix(shorter: Ref, longer: Ref) -> bool:
    return shorter.root == longer.root and longer.steps[: len(shorter.steps)] == shorter.steps
