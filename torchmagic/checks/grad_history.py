"""grad-history: a value that keeps the autograd graph of step after step."""

from __future__ import annotations

from collections.abc import Iterator

from torchmagic.checking import Facts, Rule
from torchmagic.findings import Finding
from torchmagic.history.fixes import history_fix
from torchmagic.history.gathered import gathered_tensors
from torchmagic.history.growth import growth_of, steps_of
from torchmagic.history.held import Held, also_kept_in, by_statement, held_tensors
from torchmagic.history.verdict import Verdict, verdict_on
from torchmagic.history.words import Extent, history_message


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

    def subjects(self, facts: Facts) -> Iterator[list[Held]]:
        """Return what the accumulating writes of the cell hold, all that one of them holds together.

        After them comes what the text does not explain: results of several steps side by side in one container.
        """
        explained = list(held_tensors(facts))
        yield from by_statement(explained)
        yield from by_statement(gathered_tensors(facts, explained))

    def judge(self, facts: Facts, subject: list[Held]) -> Iterator[Finding]:
        """Flag what is held when no gradient will be taken through all of it."""
        verdicts = [(held, verdict) for held in subject if (verdict := verdict_on(held, facts)) is not None]
        if verdicts:
            yield _finding(self.name(), verdicts, facts)
        kept = {id(held) for held, _ in verdicts}
        for derived in (derived for held in subject if id(held) not in kept for derived in held.derived):
            yield from self.judge(facts, [derived])


def _finding(rule: str, verdicts: list[tuple[Held, Verdict]], facts: Facts) -> Finding:
    held, verdict = max(verdicts, key=lambda pair: pair[1].again)
    others = [other.holder.text for other, _ in verdicts if other is not held]
    graph, steps = verdict.graph, steps_of(held, verdict.graph, facts)
    growth = growth_of(held, graph, steps)
    return Finding(
        rule=rule,
        level="error" if verdict.again else "warning",
        subject=held.holder.text,
        line=facts.line_of(held.accumulation.write),
        message=history_message(held, verdict, Extent(steps, growth, others), facts),
        others=(*others, *also_kept_in(held)),
        evidence={
            "tensors": sum(len(one.tensors) for one, _ in verdicts),
            "nodes": graph.nodes,
            "saved_bytes": graph.saved_bytes,
            "steps": steps,
            "backward": graph.is_freed,
            "nodes_each_step": growth.nodes if growth is not None else None,
            "saved_bytes_each_step": growth.saved_bytes if growth is not None else None,
        },
        fix=history_fix(held, facts, evaluating=verdict.evaluating),
        consequences=tuple(derived.holder.text for one, _ in verdicts for derived in one.derived),
    )
