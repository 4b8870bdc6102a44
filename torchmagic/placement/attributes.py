"""Tensors and layers that a module holds outside of its tables, so that they stay where they are when it moves."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.kinds import is_from_torch, kind_of_value
from torchmagic.namespace import Seen
from torchmagic.placement.attribute_writes import Origin, origin_of
from torchmagic.placement.misplaced import Misplaced
from torchmagic.placement.moves import Move, last_move, line_of_move, moves
from torchmagic.placement.plain_parts import PlainPart, plain_attributes, plain_parts
from torchmagic.placement.registering import advice_for, registering_fix
from torchmagic.source.attribute_names import Attribute
from torchmagic.source.attribute_uses import AttributeUses, attribute_uses, is_read_anywhere


@dataclass(frozen=True, eq=False)
class _Held:
    """An attribute of a module or of its class, and what it leads to that is elsewhere."""

    module: Seen
    name: str
    value: Any
    owner: Any
    strays: list[PlainPart]

    @property
    def has_layers(self) -> bool:
        return any(kind_of_value(stray.value) == "module" for stray in self.strays)


def left_in_modules(facts: Facts, modules: list[Seen]) -> Iterator[Misplaced]:
    """Judge the plain attributes of the modules of one class; what all of them have in common is told of once."""
    alike: dict[tuple[str, str, str], list[Misplaced]] = {}
    for seen in modules:
        for name, misplaced in _left_in_module(facts, seen):
            alike.setdefault((name, misplaced.device, misplaced.wanted), []).append(misplaced)
    for first, *others in alike.values():
        more = f"; {len(others)} more of this class {'has' if len(others) == 1 else 'have'} the same" if others else ""
        yield replace(
            first,
            fact=f"{first.fact}{more}",
            objects=tuple(thing for one in (first, *others) for thing in one.objects),
            consequences=tuple(other.subject for other in others[:5]),
        )


def _left_in_module(facts: Facts, seen: Seen) -> Iterator[tuple[str, Misplaced]]:
    """Yield the plain attributes of one module that were left behind."""
    module = seen.obj
    if is_from_torch(type(module)) or devices.is_split_on_purpose(module):
        return
    home = _home(facts, seen)
    if home is None or (home == "meta" and not any(True for _ in moves(facts))):
        return  # on meta without a move, it is a skeleton that was built without data
    for name, value, owner in plain_attributes(module):
        strays = [
            part
            for part in plain_parts(value, facts.found.names)
            if _is_elsewhere(part.value, home) and not part.is_kept_by_device
        ]
        held = _Held(seen, name, value, owner, strays)
        if strays and _is_left_behind(facts, held):
            yield name, _misplaced(facts, held, home)


def _home(facts: Facts, seen: Seen) -> str | None:
    """Return the device of a module; without tensors of its own, that of what it is a part of, or of its last move."""
    place = seen.places[0]
    home = devices.home_of(seen.obj)
    while home is None and place.role == "submodule" and place.parent is not None:
        if devices.devices_of_module(place.owner):
            return devices.home_of(place.owner)
        place = place.parent
    if home is None and not devices.devices_of_module(seen.obj):
        reaching = [move for move in moves(facts) if move.reaches(seen.obj)]
        wanted = reaching[-1].device if reaching else None
        return wanted if wanted != devices.HOST else None
    return home


def _is_elsewhere(part: Any, home: str) -> bool:
    kind = kind_of_value(part)
    if kind == "tensor":
        device = devices.device_of(part)
        return device is not None and not devices.same(device, home) and not devices.is_scalar(part)
    own = devices.home_of(part) if kind == "module" else None
    return own is not None and not devices.same(own, home)


def _is_left_behind(facts: Facts, held: _Held) -> bool:
    """Tell whether the module needs what the attribute holds, and does not look after its device."""
    if facts.program is None:
        return False
    uses = _uses(facts, held)
    if uses.looked_after:
        return False
    if uses.mixed or (uses.read and _failed_inside(facts, held.module.obj)):
        return True
    if held.has_layers:
        layers = [stray.value for stray in held.strays if kind_of_value(stray.value) == "module"]
        return not any(_has_other_holder(facts, layer, held.module.obj) for layer in layers)
    return _is_unread_constant(facts, held)


def _uses(facts: Facts, held: _Held) -> AttributeUses:
    """Read how the class uses the attribute, and how the class of a plain object on the way uses its own."""
    if facts.program is None:
        return AttributeUses()
    modules = frozenset(n for n, value in facts.found.names.items() if type(value) is types.ModuleType)
    plain = frozenset(object.__getattribute__(held.module.obj, "__dict__")) - {held.name}
    inner = frozenset(name for stray in held.strays for name in stray.inner)
    found = attribute_uses(facts.program, Attribute(held.name, _class_names(held.module.obj), plain, modules, inner))
    for name, classes in {(s.inner[-1], _class_names(s.holder)) for s in held.strays if s.inner}:
        found |= attribute_uses(facts.program, Attribute(name, classes, modules=modules))
    return found


def _class_names(thing: Any) -> frozenset[str]:
    return frozenset(kind.__name__ for kind in type.__getattribute__(type(thing), "__mro__")[:-1])


def _is_unread_constant(facts: Facts, held: _Held) -> bool:
    """Tell whether the attribute is a constant of the class that the program never reads, so that the next cell will.

    One that it reads without mixing it is used right; a vector of integers may be indices, which belong on the host;
    what a class inherits from a library may read it.
    """
    program = facts.program
    if program is None or any(stray.inner for stray in held.strays):
        return False
    shown = {step.node.name for step in program.steps if isinstance(step.node, ast.ClassDef)}
    bases = type.__getattribute__(type(held.module.obj), "__mro__")[:-1]
    if not all(is_from_torch(base) or base.__name__ in shown for base in bases):
        return False
    if all(not stray.value.is_floating_point() and stray.value.dim() == 1 for stray in held.strays):
        return False
    origin = origin_of(facts, held.module.obj, held.name, held.owner)
    if origin is None or not origin.is_in_constructor:
        return False
    return not is_read_anywhere(program, Attribute(held.name, _class_names(held.module.obj)))


def _failed_inside(facts: Facts, module: Any) -> bool:
    """Tell whether the cell ended with torch's complaint about devices, in a method of the module or of its owner."""
    if not devices.is_mismatch(facts.error):
        return False
    running = [value for frame in facts.failed_frames for value in frame.variables.values()]
    return any(
        part is module for value in running if kind_of_value(value) == "module" for part in devices.submodules(value)
    )


def _has_other_holder(facts: Facts, layer: Any, module: Any) -> bool:
    """Tell whether a layer is reached without going through the module: somebody else's, only referred to."""
    seen = facts.found.find(layer)
    return seen is not None and any(all(link.owner is not module for link in place.chain) for place in seen.places)


def _misplaced(facts: Facts, held: _Held, home: str) -> Misplaced:
    first = held.strays[0].value
    is_layer = kind_of_value(first) == "module"
    device = str(devices.home_of(first) if is_layer else devices.device_of(first))
    origin = origin_of(facts, held.module.obj, held.name, held.owner)
    return Misplaced(
        subject=_path(facts, held),
        fact=_fact(held, device, home, is_layer=is_layer),
        objects=tuple(thing for stray in held.strays for thing in _with_tensors(stray.value)),
        device=device,
        wanted=home,
        line=_line(facts, held, origin),
        others=(held.module.subject,),
        fix=registering_fix(facts, origin, held.name, held.value) if held.owner is held.module.obj else None,
    )


def _with_tensors(thing: Any) -> list[Any]:
    return [thing, *devices.all_tensors(thing)] if kind_of_value(thing) == "module" else [thing]


def _path(facts: Facts, held: _Held) -> str:
    found = facts.found.find(held.value)
    if found is None:
        return f"{held.module.subject}.{held.name}"
    own = next((place.text for place in found.places if place.owner is held.owner), found.subject)
    inner = held.strays[0].inner
    only = facts.found.find(held.strays[0].value) if inner and len(held.strays) == 1 else None
    return only.subject if only is not None else own


def _line(facts: Facts, held: _Held, origin: Origin | None) -> int | None:
    """Return the line that holds the attribute, else the line that moves the module."""
    if origin is not None and (line := origin.line_in_cell(facts)) is not None:
        return line
    move: Move | None = last_move(facts, held.module.obj)
    return line_of_move(facts, move)


def _fact(held: _Held, device: str, home: str, *, is_layer: bool) -> str:
    owner, kind = held.module.subject, type(held.value).__name__
    if is_layer:
        count = f"{len(held.strays)} layer{'s' * (len(held.strays) > 1)}"
        rest = "the rest of `{}` is on {}" if devices.devices_of_module(held.module.obj) else "`{}` was moved to {}"
        hides = "an attribute set past `nn.Module`" if kind_of_value(held.value) == "module" else f"a plain {kind}"
        return (
            f"{count} here stayed on {device} while {rest.format(owner, home)}: {hides} hides layers from `.to()`; "
            f"{advice_for(held.value, held.strays[0].value)}"
        )
    if held.owner is not held.module.obj:
        what = f"a tensor of the class {held.owner.__name__}"
    elif held.strays[0].inner:
        what = f"inside a plain {kind}"
    else:
        what = "a plain attribute"
    return (
        f"{what}, on {device}, while the parameters of `{owner}` are on {home}: `.to()` does not reach it; "
        f"{advice_for(held.value, held.strays[0].value)}"
    )
