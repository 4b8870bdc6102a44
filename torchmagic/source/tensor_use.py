"""Whether a program needs a value as a tensor, or a number would do."""

from __future__ import annotations

import ast

from torchmagic.source.program import Program
from torchmagic.source.refs import Ref, bare_name, read_names, ref_of
from torchmagic.source.writes import Write

_TAKES_NUMBERS = frozenset({"sum", "len", "print", "min", "max", "mean", "plot", "array", "float", "format", "append"})


def serves_as_tensor(write: Write, program: Program) -> bool:
    """Tell whether the program may need what a write keeps as a tensor: a number in its place would break it."""
    target, scope = write.target, write.step.scope
    for step in program.steps:
        if isinstance(step.node, ast.Return) and step.scope is scope and target.root in read_names(step.node):
            return True
        for own in step.own_expressions():
            for node in ast.walk(own):
                is_own_call = node is getattr(write.node, "func", None)
                if isinstance(node, ast.Attribute) and ref_of(node.value) == target and not is_own_call:
                    return True
                if write.kind == "store" and _hands_on(node, target):
                    return True
    return False


def _hands_on(node: ast.AST, target: Ref) -> bool:
    """Tell whether a container is handed to something that is not known to take plain numbers."""
    if isinstance(node, ast.comprehension):
        return ref_of(node.iter) == target
    if isinstance(node, ast.Subscript):
        return ref_of(node.value) == target and isinstance(node.ctx, ast.Load)
    if not isinstance(node, ast.Call):
        return False
    return any(ref_of(argument) == target for argument in node.args) and bare_name(node.func) not in _TAKES_NUMBERS
