"""Whether what is held is kept for nothing: joined from when gradients are taken and how often the graph runs."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchmagic.autograd_graph import Graph, read_graph
from torchmagic.checking import Facts
from torchmagic.history.added import outlives_its_model, values_added
from torchmagic.history.evaluating import is_evaluating, is_passed_by, is_sampled
from torchmagic.history.growth import uses_of_one_step
from torchmagic.history.held import Held, use_of
from torchmagic.history.steps_behind import are_of_several_steps
from torchmagic.source import reads
from torchmagic.source.gradients import gradient_takers
from torchmagic.source.refs import bare_name

_SECOND_BACKWARD = "backward through the graph a second time"
_MOST_READ = 64
_READING = frozenset({"item", "tolist", "numpy", "argmax", "detach"})


@dataclass(frozen=True)
class Verdict:
    """What is held for nothing.

    `again` says that the cell ended because `backward()` came to this history a second time. `evaluating` says that the
    model is in evaluation mode and nothing takes a gradient.
    """

    graph: Graph
    again: bool
    evaluating: bool


def verdict_on(held: Held, facts: Facts) -> Verdict | None:
    """Judge what an accumulating write holds; None when a gradient goes through it, or nothing shows that none will."""
    graph = read_graph(seen.obj for seen in held.tensors)
    if held.by_looking:
        return _verdict_by_looking(held, graph, facts)
    use = use_of(held, facts)
    if use == "later":
        by = held.accumulation.shape == "container" and _are_several(held, graph) and is_passed_by(held, graph, facts)
        return Verdict(graph, again=False, evaluating=False) if by else None
    if use == "never" and held.accumulation.shape == "container" and graph.is_freed and _is_of_steps(held):
        use = "each step"  # by a backward that the text does not connect with the loop
    if use == "each step" and _went_through_again(held, graph, facts):
        return Verdict(graph, again=True, evaluating=False)
    gathered = held.accumulation.shape == "container"
    evaluating = use == "never" and (is_evaluating(held, graph, facts) or (gathered and is_sampled(held, graph, facts)))
    kept = _piles_up(held, graph, facts) if use == "each step" else _is_stream(held, graph, evaluating=evaluating)
    return Verdict(graph, again=False, evaluating=evaluating) if kept else None


def _is_of_steps(held: Held) -> bool:
    return are_of_several_steps([seen.obj for seen in held.tensors])


def _verdict_by_looking(held: Held, graph: Graph, facts: Facts) -> Verdict | None:
    """Judge results of several steps: useless when backward went through all of them, or when they are evaluated."""
    if held.accumulation.shape == "sum" or all(read_graph([s.obj]).is_freed for s in held.tensors[:_MOST_READ]):
        return Verdict(graph, again=False, evaluating=False)
    takes = facts.program is None or any(True for _ in gradient_takers(facts.program))
    if takes or not (is_evaluating(held, graph, facts) or is_sampled(held, graph, facts)):
        return None
    return Verdict(graph, again=False, evaluating=True)


def _went_through_again(held: Held, graph: Graph, facts: Facts) -> bool:
    """Tell whether the cell ended because a step's backward came to the history of the step before, already freed."""
    carried = held.accumulation.shape in ("state", "sum") and graph.freed_nodes > 0
    return carried and type(facts.error) is RuntimeError and _SECOND_BACKWARD in str(facts.error)


def _piles_up(held: Held, graph: Graph, facts: Facts) -> bool:
    """Judge what is kept while each step takes its own gradient."""
    shape = held.accumulation.shape
    if shape == "container":
        return len(held.tensors) > 1
    if shape == "best":
        return True
    if shape == "sum" and values_added(held.tensors[0].obj) > 1 and outlives_its_model(graph, facts):
        return True
    one_step = uses_of_one_step(held, graph, facts)
    return graph.most_uses > max(1, one_step) if shape == "sum" else graph.most_uses > max(2, one_step)


def _is_stream(held: Held, graph: Graph, *, evaluating: bool) -> bool:
    """Judge what is kept while nothing takes a gradient: evaluation, streaming and simulation, or a step to come."""
    shape = held.accumulation.shape
    if shape == "best":
        return True
    if shape == "container":
        return evaluating and _are_several(held, graph)
    if graph.most_uses < 2:
        return False
    if evaluating:
        return True
    if held.holder.role != "name":
        return graph.most_uses > 2
    return graph.most_uses > 2 and _is_read_in_loop(held)


def _are_several(held: Held, graph: Graph) -> bool:
    """Tell whether what is held was made by the same leaves more than once."""
    return len(held.tensors) > 1 and graph.most_uses > 1


def _is_read_in_loop(held: Held) -> bool:
    """Tell whether the loop itself reads the state as a number, as a loop that trains nothing does."""
    target = held.accumulation.write.target
    for loop in held.accumulation.loops:
        for node in ast.walk(loop):
            is_reading = isinstance(node, ast.Call) and bare_name(node.func) in _READING
            if is_reading and any(ref.root == target.root for ref in reads(node)):
                return True
    return False
