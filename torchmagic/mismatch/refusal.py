"""An operation that torch refused: the words that explain it, and the fix of its line."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.checking.failing_line import failing_lines, line_in_cell
from torchmagic.checking.failing_node import is_transformed
from torchmagic.findings import Fix
from torchmagic.mismatch.failed_call import FailedCall, Part
from torchmagic.source.edits import replace_all, spelled

_KINDS = (RuntimeError, ValueError, IndexError, AssertionError, NotImplementedError, TypeError)


@dataclass(frozen=True)
class Explained:
    """What does not fit, in words. `subject` is the top-level path of what it is about, else a local name."""

    subject: str
    message: str
    fix: Fix | None = None
    others: tuple[str, ...] = ()


class Refusal(FailedCall):
    """What torch refused, and the sentences about it."""

    def where(self) -> str:
        """Say in which function of another text it failed; empty when the report's line is that place."""
        if self.here.frame.is_cell:
            return ""
        source = self.here.step.scope.unit.source
        words = " ".join(source.line(self.here.frame.line).split())
        return f" (in `{self.here.frame.function}`, line {self.here.frame.line} there: `{words}`)"

    def meets(self, part: Part, takes: str, instead: str) -> str:
        """Say what the running module takes and what it was given, what has a name first."""
        layer = self.name_of_layer()
        if part.path:
            return f"{part.text} is {list(part.shape)} and {layer} takes {takes}, not {instead}"
        return f"{layer} takes {takes}, and {part.text} is {list(part.shape)}"

    @staticmethod
    def first_named(one: Part, other: Part) -> Part:
        """Return the one that the top level has a name for, the first of two alike."""
        return one if one.path or not other.path else other

    def explained(self, part: Part, message: str, fix: Fix | None = None) -> Explained:
        """Put an explanation together whose subject is the tensor, or the running module when it has no name."""
        others = self.module_path(self.layer) if self.layer is not None else ""
        subject = part.path or others or self._root(part)
        return Explained(subject, message, fix, (others,) if others and others != subject else ())

    def _root(self, part: Part) -> str:
        """Return a top-level path that an expression is made from, else its text."""
        inside = {id(node) for node in ast.walk(part.node)} if part.node is not None else set()
        paths = (self._path(o.value, o.node) for o in self.here.operands if id(o.node) in inside and o.kind == "tensor")
        return next((path for path in paths if path), part.text.strip("`"))

    def fix(self, node: ast.AST | None, text: str, caveat: str = "") -> Fix | None:
        """Replace an expression of the failing line; None when the line is not the cell's, or it is elsewhere."""
        if node is None or not self.here.frame.is_cell or not isinstance(node, ast.expr):
            return None
        line = replace_all(self.source, self.here.frame.line, {node: text})
        return Fix(line, caveat) if line is not None else None

    def with_call(self, part: Part, call: str) -> str:
        """Write a tensor of the line with a method call, a subscript or an attribute added; `x` without a node."""
        if part.node is None:
            return (part.path or "x") + call
        text = " ".join(spelled(self.source, part.node).split())
        simple = isinstance(part.node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
        return f"{text}{call}" if simple else f"({text}){call}"

    def call_fix(self, part: Part, call: str, caveat: str = "") -> Fix | None:
        """Add a method call, a subscript or an attribute to a tensor of the line."""
        return self.fix(part.node, self.with_call(part, call), caveat)


def refusal_of(facts: Facts) -> Refusal | None:
    """Return what torch refused; None when the user's own code raised the error, or a transform such as `vmap` ran."""
    if facts.error is None or not issubclass(type(facts.error), _KINDS) or devices.is_mismatch(facts.error):
        return None
    lines, frames = failing_lines(facts), facts.failed_frames
    if not lines or lines[0].frame is not frames[-1] or isinstance(lines[0].step.node, (ast.Raise, ast.Assert)):
        return None
    return None if is_transformed(facts) else Refusal(facts, lines[0])


def line_of(failure: Refusal) -> int | None:
    """Return the cell's line to report."""
    return line_in_cell(failure.facts, failure.here)
