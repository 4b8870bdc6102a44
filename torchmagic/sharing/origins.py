"""Where the memory of an expression comes from, also when no live variable names it, such as a local buffer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torchmagic.sharing.whole_program import WholeProgram
from torchmagic.source import ANY, Ref, Step, Write
from torchmagic.source.calls import argument_node
from torchmagic.source.memory_paths import comprehension_source, last_bind, memory_ref, sources
from torchmagic.source.refs import bare_name, read_names
from torchmagic.source.scopes import Scope

_MOST = 60


class Origin(NamedTuple):
    """A path in the scope its root lives in; paths that start at an object's own attributes belong to its class."""

    owner: Scope | str
    path: Ref

    def meets(self, other: Origin) -> bool:
        """Tell whether one path leads into what the other one names."""
        if self.owner != other.owner or self.path.root != other.path.root:
            return False
        return all(
            one[0] == two[0] and (one[1] == two[1] or ANY in (one[1], two[1]))
            for one, two in zip(self.path.steps, other.path.steps, strict=False)
        )


def origins(program: WholeProgram, value: ast.AST | Ref | None, step: Step) -> list[Origin]:
    """Return every path on the way back from a value to what its memory was made as."""
    waiting = [(ref, step) for ref in _parts(value)]
    known: set[tuple[Ref, Step]] = set()
    found: dict[Origin, None] = {}
    while waiting and len(known) < _MOST:
        ref, at = node = waiting.pop()
        if node in known:
            continue
        known.add(node)
        owner = at.scope.owner_of(ref.root)
        own = owner.class_name is not None and owner.parameters[:1] == [ref.root] and ref.steps
        found[Origin(owner.class_name or "" if own else owner, Ref("", ref.steps) if own else ref)] = None
        waiting += _before(program, ref, at, owner)
    return list(found)


def _parts(value: ast.AST | Ref | None) -> Iterator[Ref]:
    """Yield the paths whose memory a value lies in or keeps: of its elements, and of what a constructor is given."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, (ast.List, ast.Tuple, ast.Dict)):
        for part in value.values if isinstance(value, ast.Dict) else value.elts:
            yield from _parts(part)
    elif isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        yield from _parts(value.elt)
    elif isinstance(value, ast.DictComp):
        yield from _parts(value.value)
    elif isinstance(value, ast.IfExp):
        yield from _parts(value.body)
        yield from _parts(value.orelse)
    elif (ref := memory_ref(value)) is not None:
        yield ref
    elif isinstance(value, ast.Call) and bare_name(value.func)[:1].isupper():
        for part in [*value.args, *(keyword.value for keyword in value.keywords)]:
            yield from _parts(part)


def _before(program: WholeProgram, ref: Ref, step: Step, owner: Scope) -> Iterator[tuple[Ref, Step]]:
    """Yield what a path is an alias or view of, one step back."""
    if (source := comprehension_source(ref.root, step)) is not None:
        yield source + ref.steps, step
        return
    bound = last_bind(program, ref.root, owner, step)
    if bound is None and step.scope is not owner:
        bound = next(iter(program.binds_of(ref.root, owner)[-1:]), None)
    if bound is not None:
        for source, at in sources(program, bound):
            yield source + ref.steps, at
        yield from _drawn(program, bound, ref)
        if bound.how in ("=", ":=") and memory_ref(bound.value) is None:
            yield from ((part + ref.steps, bound.step) for part in _parts(bound.value))
    elif ref.root in owner.parameters:
        for call in program.callers(owner):
            node = argument_node(call, owner, ref.root)
            yield from ((part + ref.steps, call.step) for part in _parts(node))


def _drawn(program: WholeProgram, bound: Write, ref: Ref) -> Iterator[tuple[Ref, Step]]:
    """Yield what a function hands out that gives a loop its values: by `yield`, or by `return` in `__next__`."""
    if bound.how not in ("for", "=", ":=") or bound.value is None:
        return
    for scope in program.scopes:
        if not (scope.yields or scope.name in ("__next__", "__getitem__")):
            continue
        if any(bound.step is call.step for call in program.callers(scope)):
            for value, at in program.results.get(scope, ()):
                parts = value.elts if isinstance(value, ast.Tuple) else [value]
                yield from ((part + ref.steps, at) for value in parts for part in _parts(value))


def reads_from(program: WholeProgram, write: Write, name: str) -> bool:
    """Tell whether a write is given a variable's value, at once or by way of others: `min(swarm)`, `ranked[0]`."""
    waiting, known = [write], {write}
    while waiting and len(known) < _MOST:
        at = waiting.pop()
        read = read_names(at.value)
        if name in read:
            return True
        bound = (last_bind(program, other, at.step.scope.owner_of(other), at.step) for other in read)
        further = {other for other in bound if other is not None} - known
        known |= further
        waiting += further
    return False


def meet(some: list[Origin], others: list[Origin]) -> bool:
    """Tell whether two values may lie in the same memory, by where they come from."""
    return any(one.meets(other) for one in some for other in others)
