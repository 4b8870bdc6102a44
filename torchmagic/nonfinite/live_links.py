"""What the live objects tell of how bad values reached each other: a loss, gradients, parameters, optimizer state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from torchmagic.autograd_graph import read_graph

if TYPE_CHECKING:
    from torchmagic.nonfinite.poison import Node


def unlink_other_optimizers(nodes: Iterable[Node]) -> None:
    """Take from an optimizer the gradients of parameters that it does not have: the text says only that it steps."""
    for node in nodes:
        if node.has("state") and (own := _optimized(node)):
            for source in list(node.sources):
                trained = _parameters(source)
                if trained and not trained & own:
                    node.sources.discard(source)


def link_training(nodes: list[Node]) -> None:
    """Join what earlier cells trained and this text does not tell of: loss, gradients, parameters, optimizer state."""
    old = [node for node in nodes if node.is_from_before and not node.sources]
    gradients = [node for node in old if node.has("gradient")]
    for node in gradients:
        trained = _parameters(node)
        node.sources |= {loss for loss in old if trained & _leaves(loss)}
    for node in old:
        if node.has("parameter"):
            node.sources |= {g for g in gradients if _parameters(g) & _parameters(node)}
        elif node.has("state"):
            own = _optimized(node)
            node.sources |= {other for other in old if other is not node and _parameters(other) & own}


def _parameters(node: Node) -> set[int]:
    """Return the identities of the parameters that a node's bad values are, or are gradients of."""
    owned = {id(value.place.owner) for value in node.values if value.role == "gradient"}
    return owned | {id(value.obj) for value in node.values if value.role == "parameter"}


def _leaves(node: Node) -> set[int]:
    """Return the identities of the leaves of the losses among a node's bad values."""
    losses = [value.obj for value in node.values if value.has_history and not value.obj.dim()]
    return set(read_graph(losses).leaves) if losses else set()


def _optimized(node: Node) -> set[int]:
    """Return the identities of the parameters of the optimizers whose state a node holds."""
    own: set[int] = set()
    for value in node.values:
        for link in value.place.chain:
            if link.role == "state":
                attributes: dict[str, Any] = object.__getattribute__(link.owner, "__dict__")
                for group in attributes.get("param_groups") or ():
                    own.update(map(id, group["params"]))
    return own
