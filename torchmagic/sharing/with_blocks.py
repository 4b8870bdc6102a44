"""What a `with` block runs: `__enter__` above it, and behind it `__exit__` or what follows its function's `yield`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from torchmagic.checking import Facts
from torchmagic.namespace.resolve import MISSING
from torchmagic.source import Context, Step, ref_of
from torchmagic.source.calls import Call
from torchmagic.source.decorators import decorators
from torchmagic.source.refs import bare_name
from torchmagic.source.scopes import Scope

if TYPE_CHECKING:
    from torchmagic.sharing.whole_program import WholeProgram

_ENTRY, _EXIT = frozenset({"__enter__", "__aenter__"}), frozenset({"__exit__", "__aexit__"})
_MANAGERS = frozenset({"contextmanager", "asynccontextmanager"})


class WithBlocks:
    """Knows where the blocks of a program begin and end, and which functions they run there."""

    def __init__(self, program: WholeProgram, facts: Facts) -> None:
        self._program, self._facts = program, facts
        self._ends: dict[Step, Step] = {}
        self._yields: dict[Scope, int | float | None] = {}

    def callers(self, scope: Scope) -> Iterator[Call]:
        """Yield the blocks that run a method when they are entered or left."""
        if scope.class_name is None or scope.name not in _ENTRY | _EXIT:
            return
        for step in self._program.steps:
            for item in step.node.items if isinstance(step.node, (ast.With, ast.AsyncWith)) else ():
                if self._is_of(item.context_expr, step, scope.class_name):
                    at = step if scope.name in _ENTRY else self._end(step)
                    yield Call(item.context_expr, at, ref_of(item.optional_vars) or ref_of(item.context_expr))

    def moved(self, contexts: list[Context], step: Step) -> list[Context]:
        """Return the ways to a statement; what stands behind a `yield` runs when the block is left."""
        behind = self._yield_of(step.scope)
        if behind is None or step.order <= behind:
            return contexts
        return [self._left(context) for context in contexts]

    def _left(self, context: Context) -> Context:
        outer = context.steps[-1] if context.steps else None
        if outer is None or not isinstance(outer.node, (ast.With, ast.AsyncWith)):
            return context
        return replace(context, steps=(*context.steps[:-1], self._end(outer)))

    def _end(self, step: Step) -> Step:
        """Return what stands for the end of a block: a statement without content behind its last one."""
        if step not in self._ends:
            inside = set(ast.walk(step.node))
            last = max(other.order for other in self._program.steps if other.node in inside)
            line = step.node.end_lineno or step.line
            node = ast.Pass(lineno=line, col_offset=0, end_lineno=line, end_col_offset=0)
            self._ends[step] = replace(step, node=node, order=last + 0.5)
        return self._ends[step]

    def _yield_of(self, scope: Scope) -> int | float | None:
        """Return the order of the statement with which a context manager's function hands over to the block."""
        if scope not in self._yields:
            is_manager = bool(decorators(scope) & _MANAGERS)
            steps = (s for s in self._program.steps if s.scope is scope) if is_manager else ()
            self._yields[scope] = next((s.order for s in steps if _yields(s)), None)
        return self._yields[scope]

    def _is_of(self, node: ast.expr, step: Step, class_name: str) -> bool:
        if isinstance(node, ast.Call) and bare_name(node.func) == class_name:
            return True
        ref = ref_of(node)
        live = self._facts.value(ref, step.scope) if ref is not None else MISSING
        return live is not MISSING and any(
            kind.__name__ == class_name for kind in type.__getattribute__(type(live), "__mro__")
        )


def _yields(step: Step) -> bool:
    return any(isinstance(node, ast.Yield) for own in step.own_expressions() for node in ast.walk(own))
