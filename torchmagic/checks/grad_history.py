"""grad-history: a value that keeps the autograd graph of step after step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from torchmagic.autograd_graph import Graph, grad_node, read_graph
from torchmagic.checking import Facts, Rule
from torchmagic.findings import Finding
from torchmagic.history.fixes import history_fix, is_number
from torchmagic.history.held import Held, held_tensors, use_of
from torchmagic.render.words import size
from torchmagic.source import reads

_SECOND_BACKWARD = "backward through the graph a second time"
_READING = frozenset({"item", "tolist", "numpy", "argmax", "print", "float", "int"})


class GradHistory(Rule):
    """A value that is kept from step to step still carries its autograd history.

    A tensor that comes out of a model remembers every operation it was made by. Adding it to a running sum, or keeping
    it in a list, keeps that memory alive for every step: first the training slows down, then the memory runs out. After
    `backward()` the activations are freed and the nodes of the graph pile up; without `backward()` all the activations
    stay too.

    Keep the number, not the tensor: `total += loss.item()`. For a tensor that is needed later, `.detach()`. Around an
    evaluation loop, `with torch.no_grad():`. A loss that is summed up and then differentiated as a whole is right as it
    is.
    """

    bad = """
    import torch
    from torch import nn
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0.0
    for step in range(4):
        loss = model(torch.randn(8, 3)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    """
    good = """
    import torch
    from torch import nn
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0.0
    for step in range(4):
        loss = model(torch.randn(8, 3)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    """

    def subjects(self, facts: Facts) -> Iterator[Held]:
        """Return what the accumulating writes of the cell hold."""
        return held_tensors(facts)

    def judge(self, facts: Facts, subject: Held) -> Iterator[Finding]:
        """Flag what is held when no gradient will be taken through all of it."""
        use = use_of(subject, facts)
        graph = read_graph(seen.obj for seen in subject.tensors)
        kept = _piles_up if use == "each step" else _is_stream
        again = use == "each step" and _went_through_again(subject, graph, facts)
        if use == "later" or not (again or kept(subject, graph, facts)):
            for derived in subject.derived:
                yield from self.judge(facts, derived)
            return
        write = subject.accumulation.write
        yield Finding(
            rule=self.name(),
            level="error" if again else "warning",
            subject=subject.holder.text,
            line=facts.line_of(write),
            message=_message_of_error(subject)
            if again
            else _message(subject, graph, evaluating=_is_evaluating(graph, facts) and use == "never"),
            evidence={
                "tensors": len(subject.tensors),
                "nodes": graph.nodes,
                "saved_bytes": graph.saved_bytes,
                "steps": _steps(subject, graph),
                "backward": graph.is_freed,
            },
            fix=history_fix(subject, facts),
            consequences=tuple(derived.holder.text for derived in subject.derived),
        )


def _went_through_again(held: Held, graph: Graph, facts: Facts) -> bool:
    """Tell whether the cell ended because a step's backward came to the history of the step before, already freed."""
    carried = held.accumulation.shape in ("state", "sum") and graph.freed_nodes > 0
    return carried and type(facts.error) is RuntimeError and _SECOND_BACKWARD in str(facts.error)


def _message_of_error(held: Held) -> str:
    return (
        f"`{held.holder.text}` carries the autograd history of one step into the next, and `backward()` came to it a "
        "second time; cut it between the steps: `.detach()`"
    )


def _piles_up(held: Held, graph: Graph, facts: Facts) -> bool:
    """Judge what is kept while each step takes its own gradient."""
    shape = held.accumulation.shape
    if shape == "container":
        return len(held.tensors) > 1
    if shape == "best":
        return True
    one_step = _uses_of_one_step(held, facts)
    return graph.most_uses > max(1, one_step) if shape == "sum" else graph.most_uses > max(2, one_step)


def _uses_of_one_step(held: Held, facts: Facts) -> int:
    """Return how often the last loss uses its parameters: what a state that is cut in each step may show too."""
    own = {id(seen.obj) for seen in held.tensors}
    losses = (
        seen.obj
        for seen in facts.found.of_kind("tensor")
        if grad_node(seen.obj) is not None and not seen.obj.dim() and id(seen.obj) not in own
    )
    return min((read_graph([loss]).most_uses for loss in islice(losses, 8)), default=0)


def _is_stream(held: Held, graph: Graph, facts: Facts) -> bool:
    """Judge what is kept while nothing takes a gradient: evaluation, streaming and simulation, or a step to come."""
    shape = held.accumulation.shape
    if shape == "best":
        return True
    evaluating = _is_evaluating(graph, facts)
    if shape == "container":
        return evaluating and len(held.tensors) > 1 and graph.most_uses > 1
    if graph.most_uses < 2:
        return False
    if evaluating:
        return True
    if held.holder.role != "name":
        return graph.most_uses > 2
    return graph.most_uses > 2 and _is_read_in_loop(held)


def _is_evaluating(graph: Graph, facts: Facts) -> bool:
    """Tell whether every module whose parameters the graph uses is in evaluation mode."""
    owners = []
    for seen in facts.found.of_kind("module"):
        own = object.__getattribute__(seen.obj, "_parameters")
        if any(id(parameter) in graph.leaves for parameter in own.values() if parameter is not None):
            owners.append(seen.obj)
    return bool(owners) and not any(object.__getattribute__(module, "training") for module in owners)


def _is_read_in_loop(held: Held) -> bool:
    """Tell whether the loop itself reads the state as a number, as a loop that trains nothing does."""
    target = held.accumulation.write.target
    for loop in held.accumulation.loops:
        for node in ast.walk(loop):
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                if name in _READING and any(ref.root == target.root for ref in reads(node)):
                    return True
    return False


def _steps(held: Held, graph: Graph) -> int:
    return len(held.tensors) if held.accumulation.shape == "container" else graph.most_uses


def _message(held: Held, graph: Graph, *, evaluating: bool) -> str:
    subject, shape, count = held.holder.text, held.accumulation.shape, len(held.tensors)
    at_least = "at least " if graph.is_cut else ""
    if shape == "container":
        start = f"`{subject}`: {count} tensors keep the autograd history of their steps"
    elif shape == "best":
        start = f"`{subject}` keeps the autograd history of the step it was taken from"
    else:
        start = f"`{subject}` keeps the autograd history of {at_least}{graph.most_uses} steps"
    nodes = f"{at_least}{graph.nodes:,} graph nodes"
    fact = f"{nodes} that nothing will use" if graph.is_freed else f"{nodes}, {size(graph.saved_bytes)} of activations"
    if evaluating:
        return f"{start} ({fact}); put the loop under `torch.no_grad()`"
    advice = "keep the number: `.item()`" if is_number(held) else "keep it without history: `.detach()`"
    return f"{start} ({fact}); {advice}"
