"""What is said of held history: whose steps, what of them is left in memory, by how much it grows, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchmagic.autograd_graph import Graph
from torchmagic.checking import Facts
from torchmagic.history.fixes import release
from torchmagic.history.growth import Growth
from torchmagic.history.held import Held
from torchmagic.history.verdict import Verdict
from torchmagic.render.words import size


@dataclass(frozen=True)
class Extent:
    """How far what is held goes back, how it grows, and the other holders that the same statement fills."""

    steps: int
    growth: Growth | None
    others: Sequence[str] = ()


def history_message(held: Held, verdict: Verdict, extent: Extent, facts: Facts) -> str:
    """Return the message of a finding."""
    subject = held.holder.text
    if verdict.again:
        return (
            f"`{subject}` carries the autograd history of one step into the next, and `backward()` came to it a second "
            "time; cut it between the steps: `.detach()`"
        )
    start, fact = f"`{subject}`{_start(held, verdict.graph, extent)}", _fact(verdict.graph, extent.growth)
    others = f"; so {'does' if len(extent.others) == 1 else 'do'} {_listed(extent.others)}" if extent.others else ""
    if verdict.evaluating:
        return f"{start} ({fact}){others}; put the loop under `torch.no_grad()`"
    advice = "keep the number" if (call := release(held, facts)) == ".item()" else "keep it without history"
    return f"{start} ({fact}){others}; {advice}: `{call}`"


def _start(held: Held, graph: Graph, extent: Extent) -> str:
    shape, count = held.accumulation.shape, len(held.tensors)
    if shape == "container":
        whose = f"{extent.steps} steps" if 1 < extent.steps < count else "their steps"
        return f": {count} tensors keep the autograd history of {whose}"
    if shape == "best":
        return " keeps the autograd history of the step it was taken from"
    return f" keeps the autograd history of {'at least ' if graph.is_cut else ''}{extent.steps} steps"


def _fact(graph: Graph, growth: Growth | None) -> str:
    """Say what is in memory: nodes when backward freed the rest, else the activations too."""
    nodes = f"{'at least ' if graph.is_cut else ''}{graph.nodes:,} graph nodes"
    if graph.is_freed or not graph.saved_bytes:
        left = " that `backward()` left" if graph.is_freed else ""
        return f"{nodes}{left}{_more(growth, f'{growth.nodes:,}' if growth is not None else '')}"
    held = f"{'at least ' if graph.is_cut or graph.hooked else ''}{size(graph.saved_bytes)} of activations"
    more = size(growth.saved_bytes) if growth is not None and growth.saved_bytes else ""
    return f"{nodes} hold {held} that no `backward()` freed{_more(growth, more)}"


def _more(growth: Growth | None, amount: str) -> str:
    return f", {'about ' if growth.about else ''}{amount} more each step" if growth is not None and amount else ""


def _listed(names: Sequence[str]) -> str:
    if len(names) > 2:
        return f"`{names[0]}` and {len(names) - 1} more"
    return " and ".join(f"`{name}`" for name in names)
