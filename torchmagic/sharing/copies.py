"""Write the line that makes a copy where memory came to be shared."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.findings import Fix
from torchmagic.namespace import Seen
from torchmagic.sharing.holders import Holder, element_expression, reaches
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import copy_method
from torchmagic.source import Step
from torchmagic.source.edits import add_after, replace_all, spelled
from torchmagic.source.memory_paths import CONVERSIONS, memory_paths, memory_ref, shallow_source

_EXPANDERS = frozenset({"expand", "expand_as", "broadcast_to"})
_CONVERTERS = frozenset({"cpu", "numpy", "to", "float", "double", "contiguous", "reshape"})


def copied_value(
    timeline: Timeline, step: Step, value: ast.expr | None, seen: Seen, holders: list[Holder]
) -> Fix | None:
    """Return the statement with the shared part of its value copied, when it stands on one line of the cell."""
    if value is None or not step.scope.unit.is_cell:
        return None
    source = step.scope.unit.source
    element = element_expression(value)
    value = value if element is None else element
    if (conversion := _conversion(value)) is not None:
        text = replace_all(source, value.lineno, {conversion: "torch.tensor"})
        return Fix(text) if text is not None and _one_line(step) else None
    parts = list(_shared_parts(timeline, step, value, holders))
    if not parts and (_converts(value) or (element is not None and isinstance(value, (ast.Attribute, ast.Name)))):
        parts = [value]
    if not parts or not _one_line(step):
        return None
    text = add_after(source, step.line, [(part, _copy_of(part, seen)) for part in parts])
    return Fix(text) if text is not None else None


def _one_line(step: Step) -> bool:
    return step.node.lineno == step.node.end_lineno


def _converts(value: ast.expr) -> bool:
    """Tell whether a value is a conversion that copies only when it has to, such as `x.cpu()`."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _CONVERTERS


def _copy_of(part: ast.expr, seen: Seen) -> str:
    """Return the call that copies a part, which may be of another library than what is seen."""
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "numpy":
        return ".copy()"
    return copy_method(seen)


def _conversion(value: ast.expr) -> ast.expr | None:
    """Return the function of a call such as `torch.from_numpy(a)`, for which `torch.tensor(a)` copies."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in CONVERSIONS:
        is_torch = isinstance(value.func.value, ast.Name) and value.func.value.id == "torch"
        return value.func if is_torch and value.func.attr != "frombuffer" else None
    return None


def _shared_parts(timeline: Timeline, step: Step, value: ast.expr, holders: list[Holder]) -> Iterator[ast.expr]:
    """Yield the parts of a value that name the shared memory: itself, or elements of a tuple, dict or call."""
    if isinstance(value, (ast.Tuple, ast.List)):
        for element in value.elts:
            yield from _shared_parts(timeline, step, element, holders)
    elif isinstance(value, ast.Dict):
        for entry in value.values:
            yield from _shared_parts(timeline, step, entry, holders)
    elif (ref := memory_ref(value)) is not None:
        paths = memory_paths(timeline.program, ref, step)
        if any(reaches(path, holder.place) for path in paths for holder in holders):
            yield value
    elif isinstance(value, ast.Call):
        for argument in [*value.args, *(keyword.value for keyword in value.keywords)]:
            yield from _shared_parts(timeline, step, argument, holders)


def cloned_state(timeline: Timeline, step: Step, value: ast.expr | None) -> Fix | None:
    """Return the statement with `model.state_dict()` cloned entry by entry, or copied deeply when it is nested."""
    if value is None or not step.scope.unit.is_cell or not _one_line(step) or element_expression(value) is not None:
        return None
    source = step.scope.unit.source
    call = next((node for node in ast.walk(value) if _is_state_dict(node)), None)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.value is call:
        whole: ast.expr = value  # state_dict().copy() copies the dict alone
    else:
        whole = call
    if timeline.is_module(call.func, step):
        entries = f"{{name: value.clone() for name, value in {spelled(source, call)}.items()}}"
        return _fixed(replace_all(source, step.line, {whole: entries}))
    return _with_import(timeline, replace_all(source, step.line, {whole: f"copy.deepcopy({spelled(source, call)})"}))


def _is_state_dict(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"


def deep_copied(timeline: Timeline, step: Step, value: ast.expr | None) -> Fix | None:
    """Return the statement with its whole value under `copy.deepcopy`."""
    if value is None or not step.scope.unit.is_cell or not _one_line(step):
        return None
    source = step.scope.unit.source
    shallow = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "copy"
    inner = value
    if shallow and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        inner = value.args[0] if value.args else value.func.value
    return _with_import(timeline, replace_all(source, step.line, {value: f"copy.deepcopy({spelled(source, inner)})"}))


def _with_import(timeline: Timeline, text: str | None) -> Fix | None:
    """Return the fix, with the import it needs when the notebook does not have it."""
    if text is None or "copy" in timeline.facts.found.names:
        return _fixed(text)
    return Fix(f"import copy\n{text}")


def copies_shallowly(value: ast.expr | None) -> bool:
    """Tell whether a value, or each element of it, is a copy that keeps the parts of what it copies."""
    if value is None:
        return False
    return shallow_source(element_expression(value) or value) is not None


def repeated(step: Step, value: ast.expr | None) -> Fix | None:
    """Return the statement with `[x] * n` or `dict.fromkeys(keys, x)` turned into a comprehension."""
    if value is None or not step.scope.unit.is_cell or not _one_line(step):
        return None
    source = step.scope.unit.source
    for node in ast.walk(value):
        if (parts := multiplied(node)) is not None:
            listed, count = parts
            if len(listed.elts) == 1 and isinstance(node, ast.expr) and _makes_new(listed.elts[0]):
                text = f"[{spelled(source, listed.elts[0])} for _ in range({spelled(source, count)})]"
                return _fixed(replace_all(source, step.line, {node: text}))
        if isinstance(node, ast.Call) and is_fromkeys(node) and _makes_new(node.args[1]):
            keys, entry = (spelled(source, argument) for argument in node.args)
            return _fixed(replace_all(source, step.line, {node: f"{{key: {entry} for key in {keys}}}"}))
    return None


def _fixed(text: str | None) -> Fix | None:
    return None if text is None else Fix(text)


def _makes_new(node: ast.expr) -> bool:
    """Tell whether evaluating an expression again makes another object."""
    return isinstance(node, (ast.Call, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.BinOp))


def multiplied(node: ast.AST) -> tuple[ast.List, ast.expr] | None:
    """Return list and count of `[x] * n`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        if isinstance(node.left, ast.List):
            return node.left, node.right
        if isinstance(node.right, ast.List):
            return node.right, node.left
    return None


def is_fromkeys(node: ast.AST) -> bool:
    """Tell whether a node is `dict.fromkeys(keys, value)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "fromkeys"
        and len(node.args) == 2
    )


def repeats_one_value(value: ast.expr | None) -> bool:
    """Tell whether an expression puts one value into several entries: `[x] * n`, `[x, x]`, `[x for _ in range(n)]`."""
    if value is None:
        return False
    for node in ast.walk(value):
        if multiplied(node) is not None or is_fromkeys(node):
            return True
        if isinstance(node, (ast.List, ast.Tuple, ast.Dict)):
            entries = node.values if isinstance(node, ast.Dict) else node.elts
            names = [entry.id for entry in entries if isinstance(entry, ast.Name)]
            if len(names) > len(set(names)):
                return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _EXPANDERS:
            return True
        if (element := element_expression(node if isinstance(node, ast.expr) else None)) is not None:
            bound = {
                part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            }
            inside = element.elts if isinstance(element, (ast.Tuple, ast.List)) else [element]
            if any(isinstance(part, ast.Name) and part.id not in bound for part in inside):
                return True
    return False
