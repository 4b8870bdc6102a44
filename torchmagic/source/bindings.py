"""What the names of the cell and of the functions it runs are bound to, statement by statement."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from torchmagic.source.definitions import GRAD, Definition, Frame
from torchmagic.source.refs import Ref
from torchmagic.source.scopes import Scope, Step

DEEPEST = 6
"""How many calls deep functions are followed."""

NO_VALUE_ATTRIBUTES = frozenset(
    {"shape", "dtype", "device", "ndim", "requires_grad", "is_leaf", "index", "columns", "layout"}
)
"""Attributes that hold none of the values of their owner."""
NO_VALUES = frozenset(
    {
        "isnan", "isfinite", "isinf", "isna", "notna", "isnull", "notnull", "argmax", "argmin", "argsort",
        "zeros_like", "ones_like", "empty_like", "rand_like", "randn_like", "randint_like", "new_zeros", "new_ones",
        "new_empty", "size", "numel", "dim", "len", "any", "all", "eq", "ne", "lt", "gt", "le", "ge", "searchsorted",
        "bucketize", "nonzero", "logical_not", "logical_and", "logical_or", "allclose", "equal", "isclose", "print",
        "isinstance", "type", "id", "range", "display", "hasattr", "digitize",
    }
)  # fmt: skip
"""Calls whose result holds none of the values of their arguments; NaN does not get through a comparison."""


class Bindings:
    """Finds and makes definitions. `cell` is the frame of the cell itself.

    Args:
        cell: the scope of the cell.
        kind_of: tells what a path of the cell's top level is; see `Flow`.
    """

    def __init__(self, cell: Scope, kind_of: Callable[[Ref], str]) -> None:
        self.cell = Frame(cell, ())
        self._kind_of = kind_of
        self._made: dict[tuple[Any, ...], Definition] = {}
        self._stack: list[Frame] = [self.cell]
        self._enclosing: dict[Scope, Frame] = {}

    @property
    def definitions(self) -> list[Definition]:
        """Every definition, in the order in which they were made."""
        return list(self._made.values())

    def final(self, key: str) -> set[Definition]:
        """Return what a variable (or `variable.attribute`) was defined by at the end."""
        return self.cell.lookup(key) if key not in self.cell.names else set(self.cell.names[key])

    def _owner(self, ref: Ref, frame: Frame) -> tuple[Frame, Ref]:
        """Return the frame a path's root lives in and the path as that frame spells it."""
        for _ in range(DEEPEST):
            if ref.root in frame.aliases:
                frame, base = frame.aliases[ref.root]
                ref = base + ref.steps
                continue
            scope = frame.scope.owner_of(ref.root)
            if scope is frame.scope or ref.root in frame.names:
                return frame, ref
            if isinstance(scope.node, ast.Module):
                frame = self.cell
            else:
                running = next((other for other in reversed(self._stack) if other.scope is scope), None)
                frame = running or self._enclosing.setdefault(scope, Frame(scope, (id(scope),), frame.line))
            if ref.root not in frame.aliases:
                return frame, ref
        return frame, ref

    def _key(self, owner: Frame, ref: Ref) -> str:
        """Return the name under which a path is kept: its root, for plain objects with the first attribute."""
        steps = ref.steps
        has_grad = any(step == ("attr", "grad") for step in steps)
        key = ref.root
        by_attribute = bool(steps) and steps[0][0] == "attr" and steps[0][1] not in ("grad", "data")
        whole = ("module", "stateful", "leaf", "tensor")
        if by_attribute and not (owner is self.cell and self._kind_of(Ref(ref.root)) in whole):
            key = f"{key}.{steps[0][1]}"
        return key + GRAD if has_grad else key

    def _read(self, ref: Ref, frame: Frame, *, gradients: bool = False) -> set[Definition]:
        if any(kind == "attr" and name in NO_VALUE_ATTRIBUTES for kind, name in ref.steps):
            return set()
        owner, ref = self._owner(ref, frame)
        if owner is self.cell and self._kind_of(Ref(ref.root)) == "library":
            return set()
        key = self._key(owner, ref)
        found = owner.lookup(key)
        if ref.root in frame.shares and ref.steps[:1] == (("attr", "grad"),):
            found |= self._gradients_of(*frame.shares[ref.root])
        if gradients:
            found |= owner.names.get(key + GRAD, set())
        if not found and owner is self.cell and not key.endswith(GRAD):
            found = self._enter(ref.root)
        return found

    def _gradients_of(self, holder: Frame, whole: Ref) -> set[Definition]:
        """Return the gradients that are kept for a module or container, also by the name it was handed over from."""
        key = self._key(holder, whole)
        names = {up.key for made in holder.lookup(key) for up in made.upstream() if up.top}
        found = set(holder.names.get(key + GRAD, ()))
        return found.union(*(self.cell.names.get(name + GRAD, ()) for name in names))

    def _enter(self, root: str) -> set[Definition]:
        """Return the definition of a variable that the cell found in place."""
        entry = self._made.setdefault(("entry", root), Definition(root, "entry", top=True))
        self.cell.names.setdefault(root, {entry})
        return {entry}

    def _define(
        self,
        owner: Frame,
        key: str,
        how: str,
        *,
        step: Step,
        needs: set[Definition],
        value: ast.expr | None = None,
        node: ast.AST | None = None,
        frame: Frame | None = None,
    ) -> Definition:
        """Return the definition that a statement of `frame` makes of a name of `owner`; it grows with each run."""
        frame = frame or owner
        in_cell = step.scope.unit.is_cell
        line = getattr(node, "lineno", step.line) if in_cell else frame.line
        ident = (owner.ident, key, frame.ident, id(node or step.node), how)
        definition = self._made.get(ident)
        if definition is None:
            definition = Definition(key, how, owner is self.cell, line, value, step, frame.looped)
            self._made[ident] = definition
        definition.needs |= needs
        definition.looped |= frame.looped
        return definition

    def _put(self, owner: Frame, key: str, definition: Definition, *, rebinds: bool) -> None:
        old = owner.names.get(key, set())
        if rebinds:
            for name in [name for name in owner.names if name.startswith(key + ".")]:
                del owner.names[name]
            owner.names[key] = {definition}
            return
        if not old:
            old = owner.lookup(key) if not key.endswith(GRAD) else set()
            if not old and owner is self.cell and not key.endswith(GRAD):
                old = self._enter(key.partition(".")[0])
        definition.before |= old - {definition}
        owner.names[key] = old | {definition}

    def _rename(self, frame: Frame, fresh: str, owner: Frame, target: Ref) -> None:
        """Give the attributes that a constructor set the name its object is bound to."""
        for name in [name for name in frame.names if name.startswith(fresh + ".")]:
            moved = frame.names.pop(name)
            key = self._key(owner, Ref(target.root, (*target.steps, ("attr", name.removeprefix(fresh + ".")))))
            for definition in moved:
                definition.key, definition.top = key, owner is self.cell
            owner.names[key] = owner.names.get(key, set()) | moved
