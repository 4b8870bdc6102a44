"""Results of several steps that are kept with their history, found by looking at the graphs alone.

However a container was filled, by a generator, a callback, a library: when each entry was made by the same parameters
and none is part of another, they are the results of several steps. A sum or a mean of them shows its steps too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from torchmagic.autograd_graph import grad_node
from torchmagic.checking.facts import Facts
from torchmagic.history.held import Held, entry_of
from torchmagic.history.steps_behind import are_steps, steps_behind
from torchmagic.namespace import Place, Seen
from torchmagic.source import Context, Program, Ref, Write
from torchmagic.source.accumulation import Accumulation
from torchmagic.source.gathering import joined
from torchmagic.source.gradients import depends_on, gradient_takers
from torchmagic.source.recurrence import Shape
from torchmagic.source.refs import bare_name, read_names

_MOST_ENTRIES = 64
_LEAST_STEPS = 3
"""Fewer parts may be one step's: a loss on real data and a loss on made-up data."""


def gathered_tensors(facts: Facts, explained: Iterable[Held]) -> Iterator[Held]:
    """Yield what holds results of several steps, with the statement that put them there: containers, sums and means.

    Args:
        facts: the facts of the look.
        explained: what the accumulating writes of the text hold; it is left out.
    """
    program = facts.program
    if program is None:
        return
    claimed = {id(seen) for held in explained for one in (held, *held.derived) for seen in one.tensors}
    unexplained = [s for s in facts.found.of_kind("tensor") if id(s) not in claimed and grad_node(s.obj) is not None]
    groups: dict[int, tuple[Place, list[Seen]]] = {}
    written: set[object] = {key.value for key in _written_keys(program)}
    joint = _takes_joint_gradient(program)
    for seen in unexplained:
        holder = _container(seen, written)
        if holder is not None:
            groups.setdefault(id(holder), (holder, []))[1].append(seen)
    for holder, tensors in groups.values():
        records = _records(holder, tensors)
        if joint or len(records) < 2 or not are_steps(records):
            continue
        yield from _held(facts, program, "container", holder, tensors)
    alone = [seen for seen in unexplained if _is_single(seen, groups.values())]
    for seen in alone[:_MOST_ENTRIES]:
        behind = steps_behind(seen.obj)
        if behind.count >= _LEAST_STEPS and (behind.made_after or not joint):
            yield from _held(facts, program, "sum", seen.places[0], [seen])


def _records(holder: Place, tensors: list[Seen]) -> list[list[Any]]:
    """Return the tensors by the entry of the container in which they lie: those of one step are one record."""
    records: dict[object, list[Any]] = {}
    for seen in tensors:
        entry = entry_of(seen, holder)
        records.setdefault(entry.key if entry is not None else None, []).append(seen.obj)
    return list(records.values())


def _is_single(seen: Seen, groups: Iterable[tuple[Place, list[Seen]]]) -> bool:
    """Tell whether a tensor is held by itself, not as one of many, nor inside of a module or an optimizer."""
    if any(link.role in ("self", "state", "group", "grad") for link in seen.places[0].chain):
        return False
    return all(len(tensors) < 2 or all(seen is not other for other in tensors) for _, tensors in groups)


def _held(facts: Facts, program: Program, shape: Shape, holder: Place, tensors: list[Seen]) -> Iterator[Held]:
    spelled = [w for w in facts.writes_to(tensors[-1]) if w.kind in ("store", "augment") and _has_line(facts, w)]
    write = spelled[-1] if spelled else _filling(facts, holder, shape)
    if write is None or any(depends_on(call, Ref(holder.root), program) for call in gradient_takers(program)):
        return
    contexts = program.contexts(write.step) or [Context((write.step,), ())]
    accumulation = Accumulation(write, shape, (), contexts[0])
    entries = (entry_of(seen, holder) if shape == "container" else None for seen in tensors)
    yield Held(accumulation, holder, tuple(tensors), entries=tuple(entries), by_looking=True)


def _written_keys(program: Program) -> Iterator[ast.Constant]:
    """Yield the keys of the dicts that the program writes out: such a dict is a record of one step."""
    for step in program.steps:
        for own in step.own_expressions():
            for node in ast.walk(own):
                if isinstance(node, ast.Dict):
                    yield from (key for key in node.keys if isinstance(key, ast.Constant))


def _names_a_part(link: Place, written: set[object]) -> bool:
    """Tell whether an entry is one of the parts of a record, not one of many of a kind."""
    return issubclass(type(link.owner), tuple) or (issubclass(type(link.owner), dict) and link.key in written)


def _container(seen: Seen, written: set[object]) -> Place | None:
    """Return the innermost container of which a tensor, or the record it lies in, is one entry of many of a kind."""
    for place in seen.places:
        if any(link.role in ("self", "state", "group", "grad", "closure") for link in place.chain):
            return None
        for link in reversed(place.chain):
            if link.role == "item" and not _names_a_part(link, written):
                return link.parent
    return None


def _filling(facts: Facts, holder: Place, shape: Shape) -> Write | None:
    """Return the statement that put the entries into a container, or made a sum; None when they are written out."""
    program = facts.program
    if program is None:
        return None
    last = next((link.key for link in reversed(holder.chain) if link.role in ("attribute", "name", "closure")), None)
    named = [w for w in program.writes if last in (w.target.root, w.target.last_name) and _has_line(facts, w)]
    if shape == "container" and any(w.kind == "bind" and _is_record(w.value) for w in named):
        return None
    adding = [w for w in named if w.kind in ("store", "augment")]
    binding = [w for w in named if w.kind == "bind" and w.value is not None and not isinstance(w.value, ast.Constant)]
    rooted = [w for w in program.writes if w.target.root == holder.root and _has_line(facts, w)]
    for found in (adding, binding, rooted):
        if found:
            return found[-1]
    return None


def _has_line(facts: Facts, write: Write) -> bool:
    return write.step.scope.unit.is_cell or facts.line_of(write) is not None


def _is_record(value: ast.expr | None) -> bool:
    """Tell whether a container is written out, entry by entry: its entries are different things of one step."""
    if isinstance(value, ast.Dict):
        return bool(value.keys)
    return isinstance(value, (ast.List, ast.Tuple, ast.Set)) and bool(value.elts)


def _takes_joint_gradient(program: Program) -> bool:
    """Tell whether a gradient is taken of several values joined into one, which the entries may be."""
    for call in gradient_takers(program):
        if not isinstance(call.node, ast.Call):
            return True
        function = call.node.func
        waiting = [*call.node.args, *([function.value] if isinstance(function, ast.Attribute) else [])]
        known: set[str] = set()
        while waiting:
            value = waiting.pop()
            if _joins(value):
                return True
            for name in read_names(value) - known if isinstance(value, (ast.Name, ast.NamedExpr)) else ():
                known.add(name)
                binds = program.binds_of(name, call.step.scope.owner_of(name))
                waiting += [write.value for write in binds if write.value is not None]
    return False


def _joins(value: ast.expr) -> bool:
    """Tell whether a value is made of many: a sum over a list, a stack, a running sum."""
    calls = (node for node in ast.walk(value) if isinstance(node, ast.Call))
    return any(joined(call) is not None or (bare_name(call.func) == "sum" and bool(call.args)) for call in calls)
