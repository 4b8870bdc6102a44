"""Which statement gave a module's attribute what it holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchmagic.checking import Facts
from torchmagic.checking.expressions import live_value
from torchmagic.source import Ref, Step, Write
from torchmagic.source.refs import bare_name


@dataclass(frozen=True, eq=False)
class Origin:
    """The statement, and the write it makes where it is an ordinary one."""

    step: Step
    line: int
    write: Write | None = None
    in_class_body: bool = False

    @property
    def is_in_constructor(self) -> bool:
        """Whether the constructor or the body of the class holds the statement."""
        return self.in_class_body or self.step.scope.name in ("__init__", "__post_init__")

    def line_in_cell(self, facts: Facts) -> int | None:
        """Return the cell's line of it: its own, or that of the cell's statement that leads to it."""
        if self.step.scope.unit.is_cell:
            return self.line
        contexts = facts.program.contexts(self.step) if facts.program is not None else []
        return next((context.line for context in contexts if context.line is not None), None)


def origin_of(facts: Facts, module: Any, name: str, owner: Any) -> Origin | None:
    """Return the last statement that gives an attribute of a module, or of the class that owns it, a value.

    Of an attribute that starts as an empty container, it is the statement that fills it.
    """
    classes = {kind.__name__ for kind in type.__getattribute__(type(module), "__mro__")[:-1]}
    if owner is not module:
        return _in_class_body(facts, owner.__name__, name)
    found = list(_statements(facts, module, classes, name))
    bound = [o for o in found if o.write is None or (o.write.kind == "bind" and not _is_empty(o.write.value))]
    filled = [o for o in found if o.write is not None and o.write.kind in ("store", "augment")]
    rest = [o for o in found if o.write is not None and not _is_none(o.write.value)]
    return next((group[-1] for group in (bound, filled, rest) if group), None)


def _statements(facts: Facts, module: Any, classes: set[str], name: str) -> Iterator[Origin]:
    for write in facts.program.writes if facts.program is not None else ():
        if write.target.steps[:1] == (("attr", name),) and len(write.target.steps) <= 2:
            scope = write.step.scope
            is_own = scope.class_name in classes and scope.parameters[:1] == [write.target.root]
            if is_own or facts.value(Ref(write.target.root), scope) is module:
                yield Origin(write.step, write.line, write)
    for call, step in facts.program.calls if facts.program is not None else ():
        if _sets_by_name(call, name) and (
            step.scope.class_name in classes or any(live_value(facts, a, step) is module for a in call.args[:1])
        ):
            yield Origin(step, call.lineno)


def _sets_by_name(call: ast.Call, name: str) -> bool:
    """Tell whether a call sets an attribute of this name, or of a name that it computes."""
    if bare_name(call.func) not in ("setattr", "__setattr__") or len(call.args) < 2:
        return False
    key = call.args[-2]
    return key.value == name if isinstance(key, ast.Constant) else True


def _in_class_body(facts: Facts, class_name: str, name: str) -> Origin | None:
    """Return the statement of a class body that makes a class attribute."""
    for step in reversed(facts.program.steps if facts.program is not None else []):
        if isinstance(step.node, ast.ClassDef) and step.node.name == class_name:
            for node in step.node.body:
                targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    return Origin(step, node.lineno, in_class_body=True)
    return None


def _is_empty(value: ast.expr | None) -> bool:
    """Tell whether a value holds nothing yet: `None`, `[]`, `{}`, `OrderedDict()`, `deque(maxlen=3)`."""
    if isinstance(value, ast.Call):
        kinds = ("list", "dict", "set", "tuple", "OrderedDict", "deque")
        made = bare_name(value.func)
        return made == "defaultdict" or (made in kinds and not value.args)
    if isinstance(value, (ast.List, ast.Tuple)):
        return not value.elts
    return _is_none(value) or (isinstance(value, ast.Dict) and not value.keys)


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)
