"""grad-history: a value that keeps the autograd graph of step after step."""

from __future__ import annotations

from collections.abc import Iterator

from torchmagic.autograd_graph import Graph
from torchmagic.checking import Facts, Rule
from torchmagic.findings import Finding
from torchmagic.history.fixes import history_fix, release
from torchmagic.history.held import Held, held_tensors
from torchmagic.history.verdict import Verdict, verdict_on
from torchmagic.render.words import size


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

    needs_text = True
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
        verdict = verdict_on(subject, facts)
        if verdict is None:
            for derived in subject.derived:
                yield from self.judge(facts, derived)
            return
        write, graph = subject.accumulation.write, verdict.graph
        yield Finding(
            rule=self.name(),
            level="error" if verdict.again else "warning",
            subject=subject.holder.text,
            line=facts.line_of(write),
            message=_message(subject, verdict, facts),
            evidence={
                "tensors": len(subject.tensors),
                "nodes": graph.nodes,
                "saved_bytes": graph.saved_bytes,
                "steps": _steps(subject, graph),
                "backward": graph.is_freed,
            },
            fix=history_fix(subject, facts, evaluating=verdict.evaluating),
            consequences=tuple(derived.holder.text for derived in subject.derived),
        )


def _steps(held: Held, graph: Graph) -> int:
    return len(held.tensors) if held.accumulation.shape == "container" else graph.most_uses


def _message(held: Held, verdict: Verdict, facts: Facts) -> str:
    graph = verdict.graph
    subject, shape, count = held.holder.text, held.accumulation.shape, len(held.tensors)
    if verdict.again:
        return (
            f"`{subject}` carries the autograd history of one step into the next, and `backward()` came to it a second "
            "time; cut it between the steps: `.detach()`"
        )
    at_least = "at least " if graph.is_cut else ""
    if shape == "container":
        start = f"`{subject}`: {count} tensors keep the autograd history of their steps"
    elif shape == "best":
        start = f"`{subject}` keeps the autograd history of the step it was taken from"
    else:
        start = f"`{subject}` keeps the autograd history of {at_least}{graph.most_uses} steps"
    nodes = f"{at_least}{graph.nodes:,} graph nodes"
    fact = f"{nodes} that nothing will use" if graph.is_freed else f"{nodes}, {size(graph.saved_bytes)} of activations"
    if verdict.evaluating:
        return f"{start} ({fact}); put the loop under `torch.no_grad()`"
    advice = "keep the number" if (call := release(held, facts)) == ".item()" else "keep it without history"
    return f"{start} ({fact}); {advice}: `{call}`"
