"""Bad values that hang together, as one story: where they began, why, and what they reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchmagic.checking.facts import Facts
from torchmagic.nonfinite.bad_values import BadValue
from torchmagic.nonfinite.blame import Blame, Suspect, is_certain
from torchmagic.nonfinite.causes import Cause, Causes, Growth, is_clipped_norm
from torchmagic.nonfinite.harm import Harm
from torchmagic.nonfinite.poison import Node, Poison


@dataclass(frozen=True)
class Outbreak:
    """A root and what it reached. `suspect` is the operation of the text to blame; `lines` define the root."""

    root: BadValue
    cause: Cause | None
    line: int | None
    harmful: bool
    training: bool
    reached: tuple[BadValue, ...]
    suspect: Suspect | None = None
    growth: Growth | None = None
    lines: frozenset[int] = frozenset()
    is_clipped_norm: bool = False


class Outbreaks:
    """Finds the outbreaks of one look."""

    def __init__(self, facts: Facts) -> None:
        self.poison = Poison(facts)
        self.harm = Harm(self.poison)
        self._blame, self._causes = Blame(self.harm), Causes(self.harm)
        self.facts = facts
        for node in list(self.poison.nodes.values()):
            if node.has("gradient", "parameter", "state") and not node.sources:
                node.sources |= set(self._behind_finite_loss(node))
            if is_certain(self._blame.of(node)):
                node.sources -= {other for other in node.sources if self.harm.taming.is_handled(other)}

    def _behind_finite_loss(self, node: Node) -> Iterator[Node]:
        """Yield the data whose bad values a finite loss hides: a saturated unit stops them, its derivative does not."""
        known = {d for start in self.poison.path(node) if start.how == "backward" for d in start.upstream(hidden=True)}
        for other in self.poison.nodes.values():
            hides = other.nan or other.only_negative or self.harm.taming.is_handled(other)
            if other.definitions & known and not hides and other.has("tensor", "array") and self.harm.is_data(other):
                yield other

    def all(self) -> Iterator[Outbreak]:
        """Yield the outbreaks, those that do harm first."""
        nodes = list(self.poison.nodes.values())
        harmful = {node for node in nodes if self.harm.harms(node)}
        masks = {node for node in nodes if node not in harmful and self.harm.is_marker(node)}
        told: set[Node] = set()
        for group in _components([node for node in nodes if node not in masks]):
            if not group & harmful:
                continue
            hurt = {node for node in group if node in harmful or self.poison.downstream(node) & harmful}
            roots = self._roots(hurt)
            first = self._choose(roots, hurt)
            written = [r for r in roots if r is not first and self.harm.is_data(r) and self.harm.is_written(r)]
            for root in [first, *(written if self.harm.is_data(first) else [])]:
                yield self._outbreak(root, group)
            told |= group
        for node in nodes:
            noted = node.nan and node not in told and node not in masks and not node.has("number")
            if noted and not any(source not in told and source.nan for source in node.sources):
                yield self._note(node)

    def _roots(self, group: set[Node]) -> list[Node]:
        """Return the nodes of a group that none but those they reach themselves reached."""
        reached = {node: self.poison.downstream(node) & group for node in group}
        return [
            node for node in self.poison.nodes.values()
            if node in group and all(node not in reached[other] or other in reached[node] for other in group)
        ]  # fmt: skip

    def _choose(self, roots: list[Node], group: set[Node]) -> Node:
        norm = next((node for node in group if is_clipped_norm(node)), None)
        if norm is not None and all(node.has("gradient") or node is norm for node in roots):
            return norm
        losses = self.poison.flow.losses if self.poison.flow is not None else set()
        cyclic, has_nan = len(roots) > 1, any(node.nan for node in roots)

        def rank(node: Node) -> tuple[bool, int]:
            if self.harm.is_data(node):
                return (False, 0)
            blamed = self._blame.of(node)
            suspicion = blamed.weight if blamed is not None else 0
            if is_certain(blamed):
                return (False, 0 if node.has("gradient") else 1)
            if cyclic and suspicion >= 3 and node.has("tensor"):
                return (not node.nan and has_nan, 1)
            order = ("tensor", "array", "parameter", "gradient", "buffer", "state", "number")
            place = min(order.index(value.role) for value in node.values)
            return (not node.nan and node.key not in losses, 2 if node.key in losses else 3 + place)

        return min(roots, key=rank)

    def _outbreak(self, root: Node, group: set[Node]) -> Outbreak:
        downstream = self.poison.downstream(root)
        others = [node for node in self.poison.nodes.values() if node in group and node is not root]
        reached = [
            v
            for node in sorted(others, key=_weight)
            if node in downstream or self._shares_statement(node, root)
            for v in node.values
        ]
        losses = self.poison.flow.losses if self.poison.flow is not None else set()
        blamed, growth = self._blame.of(root), self._causes.growth(group)
        cause = self._causes.of(root, group, blamed, growth)
        return Outbreak(
            root=root.values[0],
            cause=cause,
            line=self._causes.line(root, cause, blamed),
            harmful=True,
            training=any(node.has("parameter", "state") or node.key in losses for node in {root, *downstream}),
            reached=(*root.values[1:], *reached),
            suspect=blamed if cause == "design" else None,
            growth=growth if cause == "explosion" else None,
            lines=frozenset(d.line for d in root.definitions if d.line is not None),
            is_clipped_norm=is_clipped_norm(root),
        )

    def _shares_statement(self, node: Node, root: Node) -> bool:
        made = {(d.step, d.value) for d in root.definitions if d.step is not None}
        return any((d.step, d.value) in made for d in node.definitions)

    def _note(self, node: Node) -> Outbreak:
        cause: Cause | None = "data" if self.harm.is_data(node) else None
        return Outbreak(
            root=node.values[0],
            cause=cause,
            line=self._causes.line(node, "data", None),
            harmful=False,
            training=False,
            reached=tuple(node.values[1:]),
        )


def _components(nodes: list[Node]) -> Iterator[set[Node]]:
    """Yield the sets of nodes that sources, or one statement that made several, connect."""
    left = list(nodes)
    while left:
        group, waiting = set(), [left[0]]
        while waiting:
            node = waiting.pop()
            if node in group:
                continue
            group.add(node)
            made = {(d.step, d.value) for d in node.definitions if d.step is not None and d.how in ("=", ":=")}
            for other in left:
                beside = any((d.step, d.value) in made for d in other.definitions)
                if beside or other in node.sources or node in other.sources:
                    waiting.append(other)
        yield group
        left = [node for node in left if node not in group]


def _weight(node: Node) -> int:
    order = ("tensor", "parameter", "gradient", "buffer", "state", "array", "number")
    return min(order.index(value.role) for value in node.values)
