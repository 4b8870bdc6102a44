"""The strongest evidence: the cell ended with torch's complaint about devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.checking.failing_line import FailingLine, Operand, failing_lines
from torchmagic.findings import Fix
from torchmagic.namespace import Seen
from torchmagic.placement.misplaced import Misplaced, device_text, grouped
from torchmagic.source import Ref, SourceText
from torchmagic.source.edits import replace_all

_INNER_ROLES = ("group", "state", "closure", "self", "grad")


def failing_operands(facts: Facts) -> list[Operand]:
    """Return what has to move for the failing statement to work; empty when the error is not about devices."""
    found = _mismatch(facts)
    return list(found[1]) if found is not None else []


def at_failure(facts: Facts) -> Iterator[Misplaced]:
    """Name what has to move, from the statement that failed."""
    found = _mismatch(facts)
    if found is None:
        return
    line, strays, wanted = found
    names = [_subject(facts, line, operand) for operand in strays]
    device = _home(strays[0])
    company = [f"`{_subject(facts, line, o)}` is on {_home(o)}" for o in line.operands if _home(o) == wanted][:2]
    verb = "and" if company else "but this line needs it on"
    against = f"{verb} {' and '.join(company)}" if company else f"{verb} {wanted}"
    yield Misplaced(
        subject=names[0],
        fact=f"is on {device} {against}; this line computes with both, so move `{_shown(strays[0])}`",
        objects=tuple(operand.value for operand in strays),
        device=device,
        wanted=wanted,
        line=_line(facts, line),
        level="error",
        others=tuple(dict.fromkeys(names[1:])),
        fix=_fix(facts, line, strays, wanted),
    )


def _mismatch(facts: Facts) -> tuple[FailingLine, tuple[Operand, ...], str] | None:
    """Find the frame whose statement mixes devices: the innermost whose stray has a name in the namespace."""
    to_host = devices.is_numpy_refusal(facts.error)
    if not to_host and not devices.is_mismatch(facts.error):
        return None
    fallback = None
    for line in failing_lines(facts):
        strays, wanted = _strays(line, to_host=to_host)
        if not strays:
            continue
        if _named(facts, line, strays[0]):
            return line, strays, wanted
        fallback = fallback or (line, strays, wanted)
    return fallback


def _strays(line: FailingLine, *, to_host: bool) -> tuple[tuple[Operand, ...], str]:
    """Return the operands that have to move, and where to: from the host to the accelerator, except for numpy."""
    counted = [o for o in line.operands if not o.converted and _home(o) and not _is_exempt(o)]
    if to_host:
        away = tuple(o for o in counted if o.kind == "tensor" and _home(o) != devices.HOST)
        return away, devices.HOST
    homes = list(dict.fromkeys(_home(o) for o in counted))
    accelerators = [home for home in homes if home != devices.HOST]
    if len(homes) < 2 or not accelerators:
        return (), ""
    wanted = _wanted(counted, accelerators)
    strays = [o for o in counted if _home(o) != wanted and (o.kind == "tensor" or o.called)]
    in_order = sorted(strays, key=lambda o: o.index)
    return _each_once(in_order), wanted


def _wanted(operands: list[Operand], accelerators: list[str]) -> str:
    """Choose between several accelerators: where a module is, else the first."""
    modules = [_home(o) for o in operands if o.kind == "module" and _home(o) in accelerators]
    return (modules or accelerators)[0]


def _each_once(operands: list[Operand]) -> tuple[Operand, ...]:
    known: set[int] = set()
    return tuple(o for o in operands if not (id(o.value) in known or known.add(id(o.value))))  # type: ignore[func-returns-value]


def _home(operand: Operand) -> str:
    home = devices.home_of(operand.value) if operand.kind == "module" else devices.device_of(operand.value)
    return home or ""


def _is_exempt(operand: Operand) -> bool:
    if operand.kind == "module":
        return False
    return devices.is_scalar(operand.value) or (operand.index and _home(operand) == devices.HOST)


def _named(facts: Facts, line: FailingLine, operand: Operand) -> bool:
    seen = facts.found.find(operand.value)
    return line.is_top_level or (seen is not None and seen.places[0].role not in _INNER_ROLES)


def _subject(facts: Facts, line: FailingLine, operand: Operand) -> str:
    """Name an operand as the top level of the cell knows it; a module with one tensor by that tensor."""
    path = str(_tensor_path(operand.ref))
    seen = facts.found.find(operand.value)
    if not line.is_top_level and seen is not None and seen.places[0].role not in _INNER_ROLES:
        path = seen.subject
    if operand.kind == "module":
        tensors = devices.all_tensors(operand.value)
        inside: Seen | None = facts.found.find(tensors[0]) if len(tensors) == 1 else None
        own = next((p for p in inside.places if p.owner is operand.value), None) if inside is not None else None
        return f"{path}{own.step}" if own is not None else path
    return path


def _tensor_path(ref: Ref) -> Ref:
    """Leave out attributes that are another view of the same tensor: `x.T`."""
    steps = ref.steps
    while steps and steps[-1] in (("attr", "T"), ("attr", "mT"), ("attr", "data"), ("attr", "H")):
        steps = steps[:-1]
    return Ref(ref.root, steps)


def _shown(operand: Operand) -> str:
    return str(_tensor_path(operand.ref))


def _line(facts: Facts, line: FailingLine) -> int | None:
    """Return the line of the statement, or of the cell's statement that led to it."""
    if line.frame.is_cell:
        return line.frame.line
    return next((frame.line for frame in reversed(facts.failed_frames) if frame.is_cell), None)


def _fix(facts: Facts, line: FailingLine, strays: tuple[Operand, ...], wanted: str) -> Fix | None:
    source: SourceText = line.step.scope.unit.source
    if not line.frame.is_cell:
        return None
    if wanted == devices.HOST:
        texts = {o.node: f"{grouped(source, o.node)}{_to_numpy(o)}" for o in strays}
    else:
        target = _target(facts, line, wanted)
        texts = {o.node: f"{grouped(source, o.node)}.to({target})" for o in _all_spellings(line, strays)}
    text = replace_all(source, line.frame.line, texts)
    return Fix(text) if text is not None else None


def _to_numpy(operand: Operand) -> str:
    return ".detach().cpu()" if operand.value.requires_grad else ".cpu()"


def _target(facts: Facts, line: FailingLine, wanted: str) -> str:
    """Write the device: a variable that holds it, else that of a tensor on the same line, else a string."""
    text = device_text(facts, wanted)
    if not text.startswith('"'):
        return text
    for operand in line.operands:
        if (
            operand.kind == "tensor"
            and _home(operand) == wanted
            and isinstance(operand.node, (ast.Name, ast.Attribute))
        ):
            return f"{_shown(operand)}.device"
    return text


def _all_spellings(line: FailingLine, strays: tuple[Operand, ...]) -> list[Operand]:
    ids = {id(o.value) for o in strays}
    return [o for o in line.operands if id(o.value) in ids and not o.converted]
