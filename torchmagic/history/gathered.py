"""Tensors with history that lie side by side in one container, found by looking at them alone.

However the container was filled, by a generator, a callback, a library: when each entry was made by the same
parameters and none is part of another, they are the results of several steps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torchmagic.autograd_graph import grad_node, read_graph
from torchmagic.checking.facts import Facts
from torchmagic.history.held import Held, entry_of
from torchmagic.namespace import Place, Seen
from torchmagic.source import Program, Write
from torchmagic.source.accumulation import Accumulation
from torchmagic.source.gathering import joined
from torchmagic.source.gradients import gradient_takers
from torchmagic.source.refs import bare_name, read_names

_MOST_ENTRIES = 64


def gathered_tensors(facts: Facts, explained: Iterable[Held]) -> Iterator[Held]:
    """Yield the containers whose entries are results of several steps, with the statement that bound or filled them.

    Args:
        facts: the facts of the look.
        explained: what the accumulating writes of the text hold; it is left out.
    """
    program = facts.program
    if program is None or _takes_joint_gradient(program):
        return
    claimed = {id(seen) for held in explained for one in (held, *held.derived) for seen in one.tensors}
    unexplained = [s for s in facts.found.of_kind("tensor") if id(s) not in claimed and grad_node(s.obj) is not None]
    groups: dict[int, tuple[Place, list[Seen]]] = {}
    for seen in unexplained:
        holder = _outermost_container(seen)
        if holder is not None:
            groups.setdefault(id(holder), (holder, []))[1].append(seen)
    written: set[object] = {key.value for key in _written_keys(program)}
    for holder, tensors in groups.values():
        entries = tuple(entry_of(seen, holder) for seen in tensors)
        if len(tensors) < 2 or any(link is None or _names_a_part(link, written) for link in entries):
            continue
        write = _filling(facts, holder)
        context = next(iter(program.contexts(write.step)), None) if write is not None else None
        if write is None or context is None or not _are_of_several_steps(tensors[:_MOST_ENTRIES]):
            continue
        accumulation = Accumulation(write, "container", (), context)
        yield Held(accumulation, holder, tuple(tensors), entries=entries, by_looking=True)


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


def _outermost_container(seen: Seen) -> Place | None:
    """Return the first list or dict on the way to a tensor of which it is an entry, or lies in one."""
    for place in seen.places:
        if any(link.role in ("self", "state", "group", "grad", "closure") for link in place.chain):
            return None
        for link in place.chain:
            if link.role == "item":
                return link.parent
    return None


def _are_of_several_steps(tensors: list[Seen]) -> bool:
    """Tell whether all are made from the same leaves, and none by way of what made another."""
    graph = read_graph(seen.obj for seen in tensors)
    if graph.is_cut or not graph.leaves:
        return False
    alone = [read_graph([seen.obj]) for seen in tensors]
    if len({frozenset(one.leaves) for one in alone}) != 1:
        return False
    own = sum(one.nodes - len(one.leaves) for one in alone)
    return own == graph.nodes - len(graph.leaves)


def _filling(facts: Facts, holder: Place) -> Write | None:
    """Return the last statement of the program that bound the container; None when it wrote the entries one by one."""
    own = [write for seen in _objects(facts, holder) for write in facts.writes_to(seen)]
    writes = own or [w for w in facts.program.writes if w.target.root == holder.root] if facts.program else []
    binding = [write for write in writes if write.kind == "bind" and facts.line_of(write) is not None]
    if not binding or any(_is_record(write.value) for write in binding):
        return None
    return binding[-1]


def _objects(facts: Facts, holder: Place) -> list[Seen]:
    return [seen for seen in facts.found.seen.values() if any(place is holder for place in seen.places)]


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
