"""Which bad values do harm, and which are there on purpose: masks, markers, open ends, gaps."""

from __future__ import annotations

import ast
from functools import cached_property

from torchmagic.nonfinite.bad_values import BadValue
from torchmagic.nonfinite.logarithms import is_accident
from torchmagic.nonfinite.number_origin import is_result
from torchmagic.nonfinite.poison import Node, Poison
from torchmagic.nonfinite.stored_masks import is_stored_by_mask, is_stored_through_view
from torchmagic.nonfinite.taming import Taming
from torchmagic.source import ref_of
from torchmagic.source.definitions import Definition
from torchmagic.source.hazards import hazards, is_uninitialised, nonfinite_literal
from torchmagic.source.operations import calls, computes, from_text, is_mask_method, masks, mixes, only_passes, selects

_STORES = frozenset({"append", "appendleft", "insert", "add", "extend", "[]=", "setdefault", "put", "push", "update"})
_FILLED = frozenset({"call", "backward", "step"})


class Harm:
    """Judges the nodes of a poison graph."""

    def __init__(self, poison: Poison) -> None:
        self.poison = poison
        self.facts = poison.facts
        self.taming = Taming(poison)

    @cached_property
    def has_scaler(self) -> bool:
        """Tell whether a gradient scaler is there, which skips a step when gradients overflow."""
        return any(type(seen.obj).__name__ == "GradScaler" for seen in self.facts.found.seen.values())

    def is_written(self, node: Node) -> bool:
        """Tell whether the NaN or infinity stands in the text that made the node."""
        if any(nonfinite_literal(definition.value) is not None for definition in self.poison.path(node)):
            return True
        return any(source.has("number") and self.is_constant(source) for source in node.sources)

    def is_constant(self, node: Node) -> bool:
        """Tell whether a number was written as it is, or is part of an object that the text does not explain."""
        return not any(self._is_computed_number(node, value) for value in node.values)

    def _is_computed_number(self, node: Node, value: BadValue) -> bool:
        if (
            value.role != "number"
            or value.stood_before
            or any(nonfinite_literal(d.value) for d in self.poison.path(node))
            or self._reads_text(list(self.poison.path(node)))
        ):
            return False
        return is_result(value, node.key, node.definitions)

    def mixes(self, node: Node) -> bool:
        """Tell whether something on the way to the node lets one bad element reach the others."""
        return any(
            (
                definition.how in _FILLED
                or mixes(definition.value)
                or self.calls_module(definition)
                or (definition.feeds_itself and node.nan)
            )
            and self._takes_bad(definition, node)
            for definition in self.poison.path(node)
        )

    def _takes_bad(self, definition: Definition, node: Node) -> bool:
        """Tell whether a definition is computed from a bad value; one stored beside a bad value is not."""
        finals = {final for source in node.sources for final in source.definitions}
        return any(
            need in finals or nonfinite_literal(need.value) is not None
            for need in definition.upstream(self.poison.is_clean, beside=False)
        )

    def calls_module(self, definition: Definition) -> bool:
        """Tell whether a live module, or one made on the spot, is called in a definition's expression."""
        if any(isinstance(call.func, ast.Call) for call in calls(definition.value)):
            return True
        refs = [ref_of(call.func) for call in calls(definition.value)]
        return any(ref is not None and self.poison.kind_of(ref) in ("module", "stateful") for ref in refs)

    def uses_torch(self, node: Node) -> bool:
        """Tell whether an array was computed by torch."""
        return any(source.has("tensor", "parameter", "gradient") for source in node.sources) or any(
            self.calls_module(definition) for definition in self.poison.path(node)
        )

    def is_data(self, node: Node) -> bool:
        """Tell whether the bad values came in with the data, and were not computed by torch."""
        if node.has("parameter", "state", "gradient", "buffer") or node.key in self._losses or self._was_born(node):
            return False
        if node.has("array"):
            return not self.uses_torch(node) and not self.diverges(node)
        if self.is_written(node):
            return not any(self.writes_markers(definition) for definition in self.poison.path(node))
        if node.has("number"):
            return False
        path = [d for d in self.poison.path(node) if d.value is not None or d.how == "entry"]
        if all(d.how in ("entry", "for") or only_passes(d.value, self._own_functions) for d in path):
            return bool(path)
        return self._reads_text(path)

    def _was_born(self, node: Node) -> bool:
        """Tell whether the trace saw an operation of torch make the bad values, where there is a trace."""
        trace = self.facts.trace
        return trace is not None and any(
            trace.was_born(value.obj) for value in node.values if value.role in ("tensor", "array")
        )

    def _turned_nan(self, node: Node) -> bool:
        """Tell whether the trace saw an operation make the NaN of a node out of infinities, such as Inf - Inf."""
        trace = self.facts.trace
        events = [trace.event_of(value.obj) for value in node.values if value.role == "tensor"] if trace else []
        return any(event is not None and event.kind == "born" and event.has_nan for event in events)

    def _reads_text(self, path: list[Definition]) -> bool:
        """Tell whether numbers were read from a text, and at most scaled."""
        return any(from_text(d.value) for d in path) and not any(map(self._computes_badly, path))

    @cached_property
    def _own_functions(self) -> set[str]:
        program = self.facts.program
        return {
            name for s in (program.scopes if program is not None else ()) for name in (s.name, s.class_name) if name
        }

    def _computes_badly(self, definition: Definition) -> bool:
        """Tell whether a definition may make NaN of numbers that were read well: it scales them at most."""
        if definition.value is None or definition.how in ("entry", "for"):
            return False
        known = [call for call in calls(definition.value) if not only_passes(call, self._own_functions)]
        return bool(known) or any(True for _ in hazards(definition.value))

    def brings_nan(self, definition: Definition) -> bool:
        """Tell whether a definition is of data with NaN, live ones or those that the text writes."""
        literal = nonfinite_literal(definition.value)
        if literal is not None and "nan" in ast.unparse(literal).lower():
            return True
        node = self.poison.node_of(definition)
        return node is not None and bool(node.nan) and self.is_data(node)

    def diverges(self, node: Node) -> bool:
        """Tell whether an array of numpy was computed from itself, round by round, out of finite numbers."""
        if node.sources - self.poison.downstream(node) or self.is_written(node) or node.is_from_before:
            return False
        if any(type(value.obj).__module__ != "numpy" for value in node.values):
            return False
        rounds = [d for other in {node, *self.poison.downstream(node)} for d in self.poison.path(other)]
        return not any(map(self._may_fail, rounds)) and any(
            definition.feeds_itself and definition in node.definitions and computes(definition.value, definition.how)
            for definition in rounds
        )

    def _may_fail(self, definition: Definition) -> bool:
        """Tell whether an operation may have left its domain, other than a division by a number that is there."""
        found = hazards(definition.value) if definition.value is not None else ()
        refs = [ref_of(hazard.argument) for hazard in found if hazard.weight >= 3]
        return any(ref is None or type(self.facts.value(ref)) not in (int, float) for ref in refs)

    def writes_markers(self, definition: Definition) -> bool:
        """Tell whether a definition puts in the infinities of a mask."""
        if is_stored_by_mask([definition]):
            return True
        literal = nonfinite_literal(definition.value)
        return literal is not None and _masks(definition) and "nan" not in ast.unparse(literal).lower()

    def is_marker(self, node: Node) -> bool:
        """Tell whether a mask is there on purpose; -Inf that was computed may have done what it did by accident."""
        if not self.is_mask(node):
            return False
        if node.has("number") or not node.only_negative or self._is_selected(node):
            return True
        path = list(self.poison.path(node))
        return any(map(_masks, path)) or is_stored_by_mask(path) or self._is_stored_through_view(node)

    def _is_stored_through_view(self, node: Node) -> bool:
        program = self.facts.program
        return program is not None and is_stored_through_view(program, node.key)

    @property
    def _losses(self) -> set[str]:
        return self.poison.flow.losses if self.poison.flow is not None else set()

    def is_mask(self, node: Node) -> bool:
        """Tell whether a node holds nothing but markers: infinities of one sign that mean "not this one"."""
        if node.has("number"):
            return self.is_constant(node)
        if not node.one_sign or node.has("parameter", "state", "gradient", "array") or self._is_loss(node):
            return False
        if self._is_stored_through_view(node):
            return True
        path = list(self.poison.path(node))
        if not node.only_negative:
            return any(map(_masks, path)) or is_stored_by_mask(path)
        if self.mixes(node) and any(not self.is_mask(source) for source in node.sources if source is not node):
            return False
        if self._is_selected(node) or any(map(_masks, path)) or is_stored_by_mask(path):
            return True
        return not self.is_data(node) and not is_accident(node, self.poison)

    def _is_loss(self, node: Node) -> bool:
        scalar = any(value.has_history and value.obj.dim() == 0 for value in node.values)
        return scalar or node.key in self._losses

    def _is_selected(self, node: Node) -> bool:
        flow = self.poison.flow
        for definition in flow.definitions if flow is not None else ():
            if selects(definition.value) and definition.needs & node.definitions:
                return True
        return False

    def harms(self, node: Node) -> bool:
        """Tell whether a node's bad values are a defect by themselves."""
        if node.has("parameter", "state") and any(
            value.role in ("parameter", "state") and not value.only_negative for value in node.values
        ):
            return True
        if node.has("gradient"):
            return not self.has_scaler
        if node.has("buffer"):
            return self._buffer_harms(node)
        if node.has("number"):
            return self._number_harms(node)
        if node.has("array") and not self.uses_torch(node):
            return self.diverges(node) and not self.taming.is_tamed(node)
        return self._tensor_harms(node)

    def _buffer_harms(self, node: Node) -> bool:
        filled = any(definition.how == "call" for definition in node.definitions) or not node.definitions
        return filled and any(
            value.counts.nan > 0 or str(value.place.key).startswith("running_")
            for value in node.values
            if value.role == "buffer"
        )

    def _number_harms(self, node: Node) -> bool:
        if self.is_constant(node) or (node.sources and all(map(self._is_bound, node.sources))):
            return False
        if self._is_impossible(node):
            return False
        recorded = any(d.how in _STORES and d.looped for d in node.definitions)
        return recorded or not self.taming.is_tamed(node)

    def _tensor_harms(self, node: Node) -> bool:
        if self.is_mask(node) or self.taming.is_tamed(node) or self.is_open_ended(node):
            return False
        if not node.definitions or node.is_from_before:
            return self._is_loss(node)
        if any(is_uninitialised(definition.value) for definition in self.poison.path(node)):
            return False
        if self.is_data(node):
            return False
        bad_sources = node.sources - self.poison.downstream(node) - {node}  # what it reached itself is no excuse
        if self.is_written(node) or bad_sources:
            return self.mixes(node) or self._turned_nan(node) or any(value.has_history for value in node.values)
        return True

    def _is_bound(self, node: Node) -> bool:
        """Tell whether a node is an infinity that was written as a number, such as the first of the best losses."""
        return node.has("number") and not node.nan and self.is_constant(node)

    def _is_impossible(self, node: Node) -> bool:
        """Tell whether a node is the logarithm of a probability of zero: a written -Inf that sums of exp go on from."""
        bounds = [other for other in self.poison.nodes.values() if self._is_bound(other)] if node.only_negative else []
        reached = {node, *self.poison.downstream(node)}
        return any(node in self.poison.downstream(bound) for bound in bounds) and any(map(self._is_selected, reached))

    def is_open_ended(self, node: Node) -> bool:
        """Tell whether all bad values are the -Inf first and +Inf last of a row, as in the edges of open bins."""
        return all(
            value.role in ("tensor", "array") and not value.counts.nan and value.counts.bad == 2
            and value.obj.ndim == 1 and value.obj[0] == -float("inf") and value.obj[-1] == float("inf")
            for value in node.values
        )  # fmt: skip


def _masks(definition: Definition) -> bool:
    """Tell whether a definition writes markers, in an expression or in place."""
    return masks(definition.value) or is_mask_method(definition.how)
