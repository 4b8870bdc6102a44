"""Tensors and layers that a module holds outside of its tables, so that they stay where they are when it moves."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from typing import Any

from torchmagic import devices
from torchmagic.autograd_graph import is_trained_leaf
from torchmagic.checking import Facts
from torchmagic.checking.expressions import kind_of
from torchmagic.findings import Fix
from torchmagic.kinds import is_from_torch, kind_of_value
from torchmagic.namespace import Seen
from torchmagic.namespace.children import module_internals
from torchmagic.placement.misplaced import Misplaced
from torchmagic.source import SourceText, Write
from torchmagic.source.attribute_uses import Attribute, attribute_uses
from torchmagic.source.edits import replace_all, spelled
from torchmagic.source.transfers import is_transfer

_CONTAINERS = (list, tuple, dict)


def left_in_module(facts: Facts, seen: Seen) -> Iterator[Misplaced]:
    """Judge the plain attributes of one module."""
    module = seen.obj
    home = _home(seen)
    if is_from_torch(type(module)) or home is None or devices.is_split_on_purpose(module):
        return
    if home == "meta" and not _moves_modules(facts):
        return  # a skeleton, built without data
    for name, value in list(object.__getattribute__(module, "__dict__").items()):
        if name in module_internals():
            continue
        strays = [part for part in _parts(value) if _is_elsewhere(part, home)]
        if strays and _is_used(facts, module, name, strays) and not _is_cache(facts, seen, name, value):
            yield _misplaced(facts, seen, (name, value), strays, home)


def _home(seen: Seen) -> str | None:
    """Return the device of a module, or that of the module it is a part of when it has no tensors itself."""
    place = seen.places[0]
    home = devices.home_of(seen.obj)
    while home is None and place.role == "submodule" and place.parent is not None:
        if devices.devices_of_module(place.owner):
            return devices.home_of(place.owner)
        place = place.parent
    return home


def _parts(value: Any) -> Iterator[Any]:
    """Yield the tensors and modules of an attribute, through one level of builtin containers."""
    if kind_of_value(value) is not None:
        yield value
    elif type(value) in _CONTAINERS:
        yield from (
            part for part in (value.values() if type(value) is dict else value) if kind_of_value(part) is not None
        )


def _is_elsewhere(part: Any, home: str) -> bool:
    kind = kind_of_value(part)
    if kind == "tensor":
        device = devices.device_of(part)
        return device is not None and device != home and not devices.is_scalar(part)
    own = devices.home_of(part) if kind == "module" else None
    return own is not None and own != home


def _is_used(facts: Facts, module: Any, name: str, strays: list[Any]) -> bool:
    """Tell whether the class uses the attribute beside other tensors without looking after its device."""
    if facts.program is None:
        return False
    classes = frozenset(kind.__name__ for kind in type.__getattribute__(type(module), "__mro__")[:-1])
    plain = frozenset(object.__getattribute__(module, "__dict__")) - {name}
    modules = frozenset(n for n, value in facts.found.names.items() if type(value) is types.ModuleType)
    uses = attribute_uses(facts.program, Attribute(name, classes, plain, modules))
    if uses.looked_after:
        return False
    if uses.mixed:
        return True
    layers = [stray for stray in strays if kind_of_value(stray) == "module"]
    return bool(layers) and not any(_has_other_holder(facts, layer, module) for layer in layers)


def _is_cache(facts: Facts, seen: Seen, name: str, value: Any) -> bool:
    """Tell whether a container of tensors is filled outside of the constructor, by device or shape perhaps."""
    if type(value) not in _CONTAINERS or any(kind_of_value(part) != "tensor" for part in _parts(value)):
        return False
    fills = [w for w in _bindings(facts, seen, name) if w.step.scope.name == "__init__" and w.value is not None]
    return not any(
        ast.unparse(write.value).strip("[]{}() ") not in ("", "dict", "list") for write in fills if write.value
    )


def _has_other_holder(facts: Facts, layer: Any, module: Any) -> bool:
    """Tell whether a layer is reached without going through the module: somebody else's, only referred to."""
    seen = facts.found.find(layer)
    return seen is not None and any(all(link.owner is not module for link in place.chain) for place in seen.places)


def _moves_modules(facts: Facts) -> bool:
    """Tell whether the cell moves a module, so that a device without data stands in for an accelerator."""
    for call, step in facts.program.calls if facts.program is not None else ():
        receiver = call.func.value if is_transfer(call) and isinstance(call.func, ast.Attribute) else None
        if receiver is not None and kind_of(facts, receiver, step) == "module":
            return True
    return False


def _misplaced(facts: Facts, seen: Seen, attribute: tuple[str, Any], strays: list[Any], home: str) -> Misplaced:
    name, value = attribute
    found = facts.found.find(value)
    path = f"{seen.subject}.{name}"
    if found is not None:
        path = next((place.text for place in found.places if place.owner is seen.obj), found.subject)
    is_layers = kind_of_value(strays[0]) == "module"
    device = str(devices.home_of(strays[0]) if is_layers else devices.device_of(strays[0]))
    write = _binding(facts, seen, name)
    if is_layers:
        count = f"{len(strays)} layer{'s' * (len(strays) > 1)}"
        fact = (
            f"{count} here stayed on {device} while the rest of `{seen.subject}` is on {home}: a plain "
            f"{type(value).__name__} hides layers from `.to()`; use `{_registered_container(value)}`"
        )
    else:
        advice = "register it as a buffer" if kind_of_value(value) == "tensor" else "register each tensor as a buffer"
        if is_trained_leaf(strays[0]):
            advice = "make it an `nn.Parameter`"
        fact = (
            f"a plain attribute, on {device}, while the parameters of `{seen.subject}` are on {home}: `.to()` does not "
            f"reach it; {advice}"
        )
    return Misplaced(
        subject=path,
        fact=fact,
        objects=(*strays, *(t for stray in strays if is_layers for t in devices.all_tensors(stray))),
        device=device,
        wanted=home,
        line=facts.line_of(write) if write is not None else None,
        others=(seen.subject,),
        fix=_fix(facts, write, name, value, is_layers=is_layers) if write is not None else None,
    )


def _registered_container(value: Any) -> str:
    return "nn.ModuleDict" if type(value) is dict else "nn.ModuleList"


def _bindings(facts: Facts, seen: Seen, name: str) -> list[Write]:
    classes = {kind.__name__ for kind in type.__getattribute__(type(seen.obj), "__mro__")[:-1]}
    return [
        write
        for write in (facts.program.writes if facts.program is not None else ())
        if write.kind == "bind"
        and write.target.steps == (("attr", name),)
        and write.step.scope.class_name in classes
        and write.step.scope.parameters[:1] == [write.target.root]
    ]


def _binding(facts: Facts, seen: Seen, name: str) -> Write | None:
    """Return the last statement of the class that gives the attribute a value."""
    found = _bindings(facts, seen, name)
    filled = [w for w in found if not (isinstance(w.value, ast.Constant) and w.value.value is None)]
    return filled[-1] if filled else None


def _fix(facts: Facts, write: Write, name: str, value: Any, *, is_layers: bool) -> Fix | None:
    """Register what is held, where one statement of the constructor, on one line, holds it."""
    source, node = write.step.scope.unit.source, write.step.node
    in_constructor = write.step.scope.name == "__init__" and write.step.scope.unit.is_cell
    if not in_constructor or write.value is None or node.end_lineno != node.lineno or write.position is not None:
        return None
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Attribute):
        return None
    owner, text = write.target.root, spelled(source, write.value)
    if is_layers:
        container = f"{_nn(facts)}.{'ModuleDict' if type(value) is dict else 'ModuleList'}"
        empty = isinstance(write.value, (ast.List, ast.Dict)) and not ast.unparse(write.value).strip("[]{}")
        return _on_its_line(source, node, f"{owner}.{name} = {container}({'' if empty else text})")
    if kind_of_value(value) != "tensor":
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
