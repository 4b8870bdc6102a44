"""The strongest evidence: the cell ended with torch's complaint about devices."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.checking.described import described_operands
from torchmagic.checking.failing_line import FailingLine, Operand, failing_lines, has_name, line_in_cell, name_of
from torchmagic.findings import Fix
from torchmagic.namespace import Seen
from torchmagic.placement.handed_over import handed_over
from torchmagic.placement.misplaced import Misplaced, device_text, grouped
from torchmagic.source import SourceText
from torchmagic.source.edits import replace_all


@dataclass(frozen=True)
class Mismatch:
    """The statement that failed, what in it has to move, and where to."""

    line: FailingLine
    strays: tuple[Operand, ...]
    wanted: str
    there: tuple[Operand, ...] = ()
    """What is where it has to be."""


def failing_operands(facts: Facts) -> list[Operand]:
    """Return what has to move for the failing statement to work; empty when the error is not about devices."""
    found = _mismatch(facts)
    return list(found.strays) if found is not None else []


def at_failure(facts: Facts) -> Iterator[Misplaced]:
    """Name what has to move, from the statement that failed."""
    found = _mismatch(facts)
    if found is None:
        return
    line, strays, wanted = found.line, found.strays, found.wanted
    names = [_subject(facts, line, operand) for operand in strays]
    device = home_of(strays[0])
    company = list(dict.fromkeys(f"`{o.ref}`" for o in found.there))[:2]
    if devices.is_numpy_refusal(facts.error):
        fact = f"is on {device}, and numpy reads only memory of the {wanted}; bring it there first"
    else:
        there = " and ".join(company) or "what else goes in"
        others = f"{there} {'are' if len(company) > 1 else 'is'} on {wanted}"
        advice = f"move `{strays[0].ref}`{_where(line)}"
        fact = f"is on {device}, and {others}: this line needs them on one device; {advice}"
    yield Misplaced(
        subject=names[0],
        fact=fact,
        objects=tuple(operand.value for operand in strays),
        device=device,
        wanted=wanted,
        line=line_in_cell(facts, line),
        level="error",
        others=tuple(dict.fromkeys(names[1:])),
        fix=_fix(facts, line, strays, wanted),
        operands=described_operands(line),
    )


def _where(line: FailingLine) -> str:
    """Say in which function of another text it failed; empty when the report's line is that place."""
    if line.frame.is_cell:
        return ""
    words = " ".join(line.step.scope.unit.source.line(line.frame.line).split())
    return f" (in `{line.frame.function}`, line {line.frame.line} there: `{words}`)"


def is_device_error(facts: Facts) -> bool:
    """Tell whether the cell ended with an error about devices."""
    return devices.is_mismatch(facts.error) or devices.is_numpy_refusal(facts.error)


def _mismatch(facts: Facts) -> Mismatch | None:
    """Find the frame whose statement mixes devices: the innermost whose stray has a name in the namespace.

    When that frame is not the cell's, a frame of the cell that names the same object is better.
    """
    if not is_device_error(facts):
        return None
    to_host = devices.is_numpy_refusal(facts.error)
    lines = failing_lines(facts)
    found = [m for line in lines if (m := _mismatch_of(facts, line, line.operands, to_host=to_host)) is not None]
    if not found and not to_host:
        inside = ((line, (*line.operands, *handed_over(facts, line))) for line in lines)
        found = [m for line, given in inside if (m := _mismatch_of(facts, line, given, to_host=False)) is not None]
    best = next((m for m in found if has_name(facts, m.line, m.strays[0])), found[0] if found else None)
    if best is None or best.line.frame.is_cell:
        return best
    same = (m for m in found if m.line.frame.is_cell and m.strays[0].value is best.strays[0].value)
    return next(same, best)


def _mismatch_of(facts: Facts, line: FailingLine, operands: tuple[Operand, ...], *, to_host: bool) -> Mismatch | None:
    strays, wanted = _strays(facts, line, operands, to_host=to_host)
    there = tuple(o for o in operands if home_of(o) == wanted and not o.converted)
    return Mismatch(line, strays, wanted, there) if strays else None


def _strays(
    facts: Facts, line: FailingLine, operands: tuple[Operand, ...], *, to_host: bool
) -> tuple[tuple[Operand, ...], str]:
    """Return the operands that have to move, and where to: from the host to the accelerator, except for numpy.

    An index goes to what it selects from. Where Python tells which expression failed, its operands are asked first; the
    rest of the statement follows them, but for what a comprehension runs over.
    """
    running = {id(operand) for operand in line.operands_running(facts)}
    counted = _counted(o for o in operands if id(o) in running or o not in line.operands)
    if devices.is_index_refusal(facts.error):
        away = tuple(o for o in counted if o.index)
        return away, next((home_of(o) for o in counted if not o.index), devices.HOST)
    receiver = _receiver(line)
    if receiver is not None and home_of(receiver):
        away = tuple(o for o in counted if o is not receiver and home_of(o) != home_of(receiver))
        return away, home_of(receiver)
    if to_host:
        away = tuple(o for o in counted if o.kind == "tensor" and home_of(o) != devices.HOST)
        return away, devices.HOST
    homes = list(dict.fromkeys(home_of(o) for o in counted))
    accelerators = [home for home in homes if home != devices.HOST]
    other = devices.accelerator_named_by(facts.error) if homes == [devices.HOST] else None
    if other is None and (len(homes) < 2 or not accelerators):
        return (), ""
    wanted = other or _wanted(counted, accelerators)
    walks = [node.iter for node in ast.walk(line.step.node) if isinstance(node, ast.comprehension)]
    walked = {id(part) for whole in walks for part in ast.walk(whole)}
    rest = [o for o in _counted(operands) if o not in counted and id(o.node) not in walked]
    strays = [o for o in (*counted, *rest) if home_of(o) != wanted and (o.kind == "tensor" or o.called)]
    in_order = sorted(strays, key=lambda o: o.index)
    return _each_once(in_order), wanted


def _counted(operands: Iterable[Operand]) -> list[Operand]:
    return [o for o in operands if not o.converted and home_of(o) and not _is_exempt(o)]


def _receiver(line: FailingLine) -> Operand | None:
    """Return the tensor that the statement gives new data or a gradient: what it is given has to come to it."""
    targets = line.step.node.targets if isinstance(line.step.node, ast.Assign) else []
    holders = [target.value for target in targets if isinstance(target, ast.Attribute)]
    return next((operand for operand in line.operands if operand.node in holders), None)


def _wanted(operands: list[Operand], accelerators: list[str]) -> str:
    """Choose between several accelerators: where a module is, else the first."""
    modules = [home_of(o) for o in operands if o.kind == "module" and home_of(o) in accelerators]
    return (modules or accelerators)[0]


def _each_once(operands: list[Operand]) -> tuple[Operand, ...]:
    known: set[int] = set()
    return tuple(o for o in operands if not (id(o.value) in known or known.add(id(o.value))))  # type: ignore[func-returns-value]


def home_of(operand: Operand) -> str:
    """Return the device of an operand; empty when it has none, or several."""
    home = devices.home_of(operand.value) if operand.kind == "module" else devices.device_of(operand.value)
    return home or ""


def _is_exempt(operand: Operand) -> bool:
    if operand.kind == "module":
        return False
    return devices.is_scalar(operand.value) or (operand.index and home_of(operand) == devices.HOST)


def _subject(facts: Facts, line: FailingLine, operand: Operand) -> str:
    """Name an operand as the top level of the cell knows it; a module with one tensor by that tensor."""
    path = name_of(facts, line, operand)
    if operand.kind == "module":
        tensors = devices.all_tensors(operand.value)
        inside: Seen | None = facts.found.find(tensors[0]) if len(tensors) == 1 else None
        own = next((p for p in inside.places if p.owner is operand.value), None) if inside is not None else None
        return f"{path}{own.step}" if own is not None else path
    return path


def _fix(facts: Facts, line: FailingLine, strays: tuple[Operand, ...], wanted: str) -> Fix | None:
    source: SourceText = line.step.scope.unit.source
    if not line.frame.is_cell:
        return None
    if wanted == devices.HOST:
        texts = {o.node: f"{grouped(source, o.node)}{_to_numpy(o)}" for o in strays if not o.within}
    else:
        target = device_here(facts, line, wanted)
        texts = {o.node: f"{grouped(source, o.node)}.to({target})" for o in _all_spellings(line, strays)}
    text = replace_all(source, line.frame.line, texts)
    return Fix(text) if text is not None else None


def _to_numpy(operand: Operand) -> str:
    return ".detach().cpu()" if operand.value.requires_grad else ".cpu()"


def device_here(facts: Facts, line: FailingLine, wanted: str) -> str:
    """Write a device: a variable that holds it, else that of a tensor on the same line, else a string."""
    text = device_text(facts, wanted)
    if not text.startswith('"'):
        return text
    for operand in line.operands:
        if (
            operand.kind == "tensor"
            and home_of(operand) == wanted
            and isinstance(operand.node, (ast.Name, ast.Attribute))
        ):
            return f"{operand.ref}.device"
    return text


def _all_spellings(line: FailingLine, strays: tuple[Operand, ...]) -> list[Operand]:
    ids = {id(o.value) for o in strays}
    made = [o for o in strays if o not in line.operands]
    return [o for o in (*line.operands, *made) if id(o.value) in ids and not o.converted and not o.within]
