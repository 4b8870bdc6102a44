"""How to register what a module holds outside of its tables: in words, and as a fix."""

from __future__ import annotations

import ast
import types
from typing import Any

from torchmagic.autograd_graph import is_trained_leaf
from torchmagic.checking import Facts
from torchmagic.findings import Fix
from torchmagic.kinds import kind_of_value
from torchmagic.placement.attribute_writes import Origin
from torchmagic.source import SourceText
from torchmagic.source.edits import replace_all, spelled


def advice_for(value: Any, stray: Any) -> str:
    """Say what to do about an attribute that holds a tensor or layer, or leads to it."""
    if kind_of_value(value) == "module":
        return "assign it with `self.name = ...`"
    if kind_of_value(stray) == "module":
        return f"use `{_registered_container(value)}`"
    if is_trained_leaf(stray):
        return "make it an `nn.Parameter`"
    return "register it as a buffer" if kind_of_value(value) == "tensor" else "register each tensor as a buffer"


def _registered_container(value: Any) -> str:
    return "nn.ModuleDict" if issubclass(type(value), dict) else "nn.ModuleList"


def registering_fix(facts: Facts, origin: Origin | None, name: str, value: Any) -> Fix | None:
    """Register what is held, where one statement of the constructor, on one line, holds it."""
    write = origin.write if origin is not None else None
    if origin is None or write is None or write.value is None or not origin.is_in_constructor:
        return None
    source, node = write.step.scope.unit.source, write.step.node
    if not write.step.scope.unit.is_cell or node.end_lineno != node.lineno or write.position is not None:
        return None
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Attribute):
        return None
    owner, text = write.target.root, spelled(source, write.value)
    kind = kind_of_value(value)
    if kind is None and type(value) in (list, tuple, dict) and all(
        kind_of_value(part) == "module" for part in (value.values() if type(value) is dict else value)
    ):  # fmt: skip
        container = f"{_nn(facts)}.{'ModuleDict' if type(value) is dict else 'ModuleList'}"
        empty = isinstance(write.value, (ast.List, ast.Dict)) and not ast.unparse(write.value).strip("[]{}")
        return _on_its_line(source, node, f"{owner}.{name} = {container}({'' if empty else text})")
    if kind != "tensor":
        return None
    if is_trained_leaf(value):
        caveat = "It becomes a parameter, which an optimizer trains."
        return _on_its_line(source, node, f"{owner}.{name} = {_nn(facts)}.Parameter({text})", caveat)
    return _on_its_line(source, node, f'{owner}.register_buffer("{name}", {text}, persistent=False)')


def _on_its_line(source: SourceText, statement: ast.stmt, text: str, caveat: str = "") -> Fix | None:
    """Put a statement in the place of another, and keep what else stands on the line."""
    line = replace_all(source, statement.lineno, {statement: text})
    return Fix(line, caveat) if line is not None else None


def _nn(facts: Facts) -> str:
    """Write `torch.nn` as the notebook does."""
    for name, value in facts.found.names.items():
        if type(value) is types.ModuleType and value.__name__ == "torch.nn":
            return name
    return "torch.nn"
