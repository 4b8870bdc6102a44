"""Join the accumulating writes of the text with the live tensors that carry history because of them."""

from __future__ import annotations

import ast
import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from torchmagic.autograd_graph import grad_node
from torchmagic.checking.facts import Facts, matches
from torchmagic.namespace import Place, Seen
from torchmagic.source import ANY, Call, Program, Ref, reads
from torchmagic.source.accumulation import Accumulation, accumulations
from torchmagic.source.gathering import is_joined
from torchmagic.source.gradients import depends_on, gradient_takers, makes_graph

Use = Literal["each step", "later", "never"]


@dataclass(frozen=True, eq=False)
class Held:
    """Live tensors with history that one accumulating write put into one holder.

    `holder` is the place of the accumulator itself: the sum, the list, the state. `derived` is what is held only
    because it was made from this: the list that is given the mean of a running sum. `entries` are,
    for each tensor, the link that leads from the holder to it; None where the holder is the tensor. `by_looking` marks
    what the text does not explain.
    """

    accumulation: Accumulation
    holder: Place
    tensors: tuple[Seen, ...]
    derived: tuple[Held, ...] = ()
    entries: tuple[Place | None, ...] = ()
    by_looking: bool = False


def held_tensors(facts: Facts) -> Iterator[Held]:
    """Yield what the accumulating writes hold, each with what is derived from it."""
    held = list(_held_singly(facts))
    sources = {id(one): next((other for other in held if _is_made_from(one, other)), None) for one in held}
    for one in held:
        if sources[id(one)] is None:
            derived = tuple(other for other in held if sources[id(other)] is one)
            yield dataclasses.replace(one, derived=derived)


def by_statement(held: Iterable[Held]) -> list[list[Held]]:
    """Put together what one write keeps under one variable: the lists of a dict, the sums of several meters."""
    groups: dict[tuple[int, str], list[Held]] = {}
    for one in held:
        groups.setdefault((id(one.accumulation.write), one.holder.root), []).append(one)
    return [sorted(group, key=lambda one: (len(one.holder.text), one.holder.text)) for group in groups.values()]


def also_kept_in(held: Held) -> list[str]:
    """Return the other containers that hold more than one of the same tensors."""
    counts: Counter[str] = Counter()
    for seen in held.tensors:
        others = [place for place in seen.places if place.role == "item" and held.holder not in place.chain]
        counts.update({place.parent.text for place in others if place.parent is not None})
    return [text for text, count in counts.items() if count > 1]


def _is_made_from(one: Held, other: Held) -> bool:
    write, source = one.accumulation.write, other.accumulation.write
    return (
        one is not other
        and one.accumulation.shape == "container"
        and other.accumulation.shape != "container"
        and write.step.scope is source.step.scope
        and any(read == source.target for read in reads(write.value))
    )


def _held_singly(facts: Facts) -> Iterator[Held]:
    """Yield what each accumulating write holds; a tensor is claimed by the first write that explains it.

    What is made from its own last value goes before what first filled the container, and what goes into a list before
    what put the empty list there.
    """
    if facts.program is None:
        return
    waiting = [seen for seen in facts.found.of_kind("tensor") if grad_node(seen.obj) is not None]
    claimed: set[int] = set()
    for accumulation in sorted(accumulations(facts.program), key=_deepest_first):
        spellings = [ref + accumulation.entry for ref in facts.spellings(accumulation.write)]
        groups: dict[int, tuple[Place, list[Seen]]] = {}
        for seen in waiting:
            holder = _holder(seen, spellings, accumulation, facts.program)
            if holder is not None and id(seen) not in claimed:
                groups.setdefault(id(holder), (holder, []))[1].append(seen)
                claimed.add(id(seen))
        for holder, tensors in groups.values():
            fills = accumulation.shape == "container" and any(holder in seen.places for seen in tensors)
            carried = dataclasses.replace(accumulation, shape="sum") if fills else accumulation
            yield Held(carried, holder, tuple(tensors), entries=tuple(entry_of(seen, holder) for seen in tensors))


def entry_of(seen: Seen, holder: Place) -> Place | None:
    """Return the link that leads from a holder to a tensor; None where the holder is the tensor."""
    for place in seen.places:
        below: Place | None = None
        for link in reversed(place.chain):
            if link is holder:
                return below
            below = link
    return None


def _deepest_first(accumulation: Accumulation) -> tuple[bool, int]:
    return (not accumulation.of_entry, -len(accumulation.write.target.steps))


def _fills_tensor(accumulation: Accumulation, program: Program) -> bool:
    """Tell whether what a write gathers ends up in one tensor of the same name: by rows, or joined."""
    write = accumulation.write
    if write.how == "[]=" or is_joined(write, program):
        return True
    return write.how == "=" and not isinstance(write.value, (ast.ListComp, ast.DictComp))


def _holder(seen: Seen, spellings: list[Ref], accumulation: Accumulation, program: Program) -> Place | None:
    for place in seen.places:
        for ref in spellings:
            if not matches(ref, place):
                continue
            chain = place.chain
            if any(link.role == "self" for link in chain):
                continue  # a method that was not called: another mistake
            holder = next(link for link in chain if matches(ref, link))
            if accumulation.shape == "container" and holder is place and not _fills_tensor(accumulation, program):
                continue  # a list grows; a tensor of that name is something else
            if accumulation.shape in ("sum", "best") and holder is not place:
                continue
            by_computed_key = accumulation.of_entry and accumulation.entry[-1][1] is ANY
            return holder.parent if by_computed_key and holder.parent is not None else holder
    return None


def use_of(held: Held, facts: Facts) -> Use:
    """Tell when the program takes gradients through what is held: in each step, once later, or never."""
    program, accumulation = facts.program, held.accumulation
    if program is None:
        return "never"
    here = tuple(step.order for step in accumulation.context.steps)
    use: Use = "never"
    for call in gradient_takers(program):
        depends = depends_on(call, Ref(held.holder.root), program)
        for context in program.contexts(call.step, call.node):
            inside = any(loop in accumulation.loops for loop in context.loops)
            after = tuple(step.order for step in context.steps) > here
            if depends and after and not inside:
                return "later"
            if inside and not (makes_graph(call) and _is_inner_gradient(call)):
                use = "each step"
            elif after and not inside and depends is None and use == "never":
                use = "later"
    return use


def _is_inner_gradient(call: Call) -> bool:
    """Tell `torch.autograd.grad(...)`, whose result is used further, from a training step's `backward`."""
    return (
        isinstance(call.node, ast.Call) and isinstance(call.node.func, ast.Attribute) and call.node.func.attr == "grad"
    )
