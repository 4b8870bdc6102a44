"""How bad values reached each other: a graph of variables, from the text and the live objects together."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any

from torchmagic.autograd_graph import is_trained_leaf
from torchmagic.checking.facts import Facts
from torchmagic.namespace.resolve import MISSING
from torchmagic.nonfinite.bad_values import BadValue, BadValues, bad_values, is_module
from torchmagic.nonfinite.live_links import link_training, unlink_other_optimizers
from torchmagic.source import Ref
from torchmagic.source.definitions import GRAD, Definition
from torchmagic.source.flow import Flow
from torchmagic.source.hazards import nonfinite_literal


@dataclass(eq=False)
class Node:
    """A variable that holds bad values, and what the text says it was defined by."""

    key: str
    values: list[BadValue]
    definitions: set[Definition]
    sources: set[Node] = field(default_factory=set, repr=False)

    @property
    def nan(self) -> int:
        """How many of its values are NaN."""
        return sum(value.counts.nan for value in self.values)

    @property
    def only_negative(self) -> bool:
        """Tell whether all its bad values are -Inf."""
        return all(value.only_negative for value in self.values)

    @property
    def one_sign(self) -> bool:
        """Tell whether its bad values are infinities of one sign."""
        return all(value.one_sign for value in self.values) and len({v.only_negative for v in self.values}) == 1

    def has(self, *roles: str) -> bool:
        """Tell whether a value plays one of these roles."""
        return any(value.role in roles for value in self.values)

    @property
    def is_from_before(self) -> bool:
        """Tell whether the text does not say where it comes from."""
        return all(definition.how == "entry" for definition in self.definitions)


class Poison:
    """The bad values of one look as a graph."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        facts.at_end.append(self._untie)
        self.bad: BadValues = bad_values(facts)
        self._kinds: dict[Ref, str] = {}
        self._clean: dict[Definition, bool] = {}
        self.nodes: dict[str, Node] = {}
        if not self.bad.by_key:
            return
        for key, values in self.bad.by_key.items():
            self.nodes[key] = Node(key, values, self._definitions(key))
        self._finals = {d for node in self.nodes.values() for d in node.definitions}
        for node in self.nodes.values():
            node.sources = set(self._sources(node))
        unlink_other_optimizers(self.nodes.values())
        link_training(list(self.nodes.values()))

    def _definitions(self, key: str) -> set[Definition]:
        """Return what defined a variable at the end; of gradients inside an object the text may know the whole."""
        if self.flow is None:
            return set()
        whole = key.partition(".")[0] + GRAD
        known = self.flow.cell.names
        return self.flow.final(whole if key.endswith(GRAD) and key not in known and whole in known else key)

    def _untie(self) -> None:
        """Let go of the values: the nodes refer to one another, and the flow to the graph."""
        for node in self.nodes.values():
            node.sources.clear()
        vars(self).clear()

    @cached_property
    def flow(self) -> Flow | None:
        """The flow of the cell's text; None without a text."""
        program = self.facts.program
        if program is None:
            return None
        frames = self.facts.failed_frames
        return Flow(program, self.kind_of, self.facts.runs, frames[0].line if frames else None)

    def kind_of(self, ref: Ref) -> str:
        """Tell what a path leads to, as `Flow` asks."""
        if ref not in self._kinds:
            self._kinds[ref] = self._kind(self.facts.value(ref))
        return self._kinds[ref]

    def _kind(self, obj: Any) -> str:
        torch = sys.modules["torch"]
        kind = type(obj)
        if kind is ModuleType:
            return "library"
        if obj is MISSING or kind.__module__ == "builtins":
            return ""
        if is_module(obj):
            return "stateful" if any(True for _ in obj.buffers()) else "module"
        if issubclass(kind, torch.optim.Optimizer):
            return "optimizer"
        if issubclass(kind, torch.Tensor):
            return "leaf" if is_trained_leaf(obj) else "tensor"
        plain = kind.__module__.partition(".")[0] in ("numpy", "pandas", "torch")
        return "" if plain or issubclass(kind, type) else "object"

    def is_clean(self, definition: Definition) -> bool:
        """Tell whether what a definition made is alive and finite, so that nothing bad came through it."""
        if definition not in self._clean:
            self._clean[definition] = self._look_clean(definition)
        return self._clean[definition]

    def _look_clean(self, definition: Definition) -> bool:
        key = definition.key.removesuffix(GRAD)
        if not definition.top or definition.key in self.bad.keys or self.flow is None:
            return False
        if definition not in self.flow.final(definition.key):
            return False
        if definition.how == "for":
            return False
        if definition.looped and definition.how in ("=", ":=", "with", "backward"):
            return False  # an earlier round of the loop may have held something else
        root, _, attribute = key.partition(".")
        value = self.facts.value(Ref(root, (("attr", attribute),) if attribute else ()))
        return self._is_readable(value)

    def _is_readable(self, value: Any) -> bool:
        kind = type(value)
        if kind in (int, float, bool, list, tuple, dict) or is_module(value):
            return True
        is_library = kind.__module__.partition(".")[0] in ("torch", "numpy", "pandas")
        return is_library and (kind.__name__ == "DataFrame" or hasattr(kind, "dtype"))

    def path(self, node: Node) -> Iterator[Definition]:
        """Yield the definitions that lead to a node and to no other one, nearest first."""
        own = node.definitions
        start = Definition("", "", top=False, needs=set(own))

        def stops(definition: Definition) -> bool:
            return self.is_clean(definition) or (definition in self._finals and definition not in own)

        for definition in start.upstream(stops):
            if definition is not start and not (definition not in own and stops(definition)):
                yield definition

    def _sources(self, node: Node) -> Iterator[Node]:
        own = node.definitions
        for definition in self.path(node):
            for need in definition.needs | definition.before:
                if need in self._finals and need not in own and not self.is_clean(need):
                    source = self.node_of(need)
                    if source is not None and source is not node and not self._was_better(need, source):
                        yield source

    @staticmethod
    def _was_better(need: Definition, source: Node) -> bool:
        """Tell whether parameters were used as they were made; a step of the optimizer spoiled them later."""
        steps = any(definition.how == "step" for definition in source.definitions)
        return steps and need.how not in ("step", "entry") and nonfinite_literal(need.value) is None

    def node_of(self, definition: Definition) -> Node | None:
        """Return the node of the variable that a definition is one of the last to define."""
        return next((node for node in self.nodes.values() if definition in node.definitions), None)

    def downstream(self, node: Node) -> set[Node]:
        """Return the nodes that a node reached, without the node itself unless it reached itself."""
        reached: set[Node] = set()
        waiting = [node]
        while waiting:
            current = waiting.pop()
            for other in self.nodes.values():
                if current in other.sources and other not in reached:
                    reached.add(other)
                    waiting.append(other)
        return reached

    def finite_users(self, node: Node) -> Iterator[Definition]:
        """Yield the definitions of finite variables that were made from a node's values."""
        if self.flow is None:
            return
        for definition in self.flow.definitions:
            holds_values = definition.top and not definition.key.endswith(GRAD) and self.is_clean(definition)
            if holds_values and any(d in node.definitions for d in definition.upstream(self.is_clean)):
                yield definition
