"""The statement that failed, the library's call below it, and how a sentence names the tensors and modules of both."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torchmagic.checking import Facts
from torchmagic.checking.failing_line import FailingLine, top_level_name
from torchmagic.checking.failing_node import kernel_frames, running_expression
from torchmagic.checking.library_calls import LibraryCall, failing_module, library_calls
from torchmagic.kinds import kind_of_value
from torchmagic.mismatch.shape_words import Shape, shape_of
from torchmagic.mismatch.sizes import Sizes
from torchmagic.namespace.resolve import MISSING
from torchmagic.source.edits import first_words
from torchmagic.source.refs import bare_name, ref_of


@dataclass(frozen=True, eq=False)
class Part:
    """A tensor that took part. `text` names it in a sentence; `path` is its top-level path, empty without one."""

    text: str
    path: str
    shape: Shape
    node: ast.expr | None = None
    value: Any = None

    @property
    def short(self) -> str:
        """The name alone, for a second mention."""
        return self.text.partition(" (your ")[0]


class FailedCall:
    """The failing statement of the user's innermost frame, and what libraries were doing below it."""

    def __init__(self, facts: Facts, here: FailingLine) -> None:
        self.facts = facts
        self.here = here
        self.text = str(facts.error)
        self.sizes = Sizes(facts, here)
        self.calls = library_calls(facts)[kernel_frames(facts) :]
        self._node = running_expression(facts, here.frame, here.step)

    @property
    def source(self) -> Any:
        """The text that the failing statement stands in."""
        return self.here.step.scope.unit.source

    @cached_property
    def expressions(self) -> list[ast.AST]:
        """The expression that failed; all of the statement's where Python does not tell which, before 3.11."""
        statement = self.here.step.node
        if self._node is not None:
            return [self._node]
        parts = [part for own in self.here.step.own_expressions() for part in ast.walk(own)]
        return [statement, *parts]

    @cached_property
    def call_node(self) -> ast.Call | None:
        """The call that failed, as it is written."""
        calls = [node for node in self.expressions if isinstance(node, ast.Call)]
        if len(calls) > 1 and self.calls:
            outer = self.calls[-1]
            calls = [node for node in calls if self._runs(node, outer)]
        return calls[0] if len(calls) == 1 else None

    def _runs(self, node: ast.Call, outer: LibraryCall) -> bool:
        """Tell whether a call runs a library's function."""
        called = self.sizes.live(node.func)
        return called is outer.module if outer.module is not None else bare_name(node.func) == outer.function

    @cached_property
    def layer(self) -> Any:
        """The module that was running, None when none was; `layer_call` is its call."""
        return self.layer_call.module if self.layer_call is not None else None

    @cached_property
    def layer_call(self) -> LibraryCall | None:
        """The call of the module that was running."""
        return failing_module(self.calls)

    def call_of(self, *functions: str) -> LibraryCall | None:
        """Return the outermost call of one of these functions of a library."""
        return next((call for call in reversed(self.calls) if call.function in functions), None)

    def is_layer(self, *names: str) -> bool:
        """Tell whether the running module is of one of these classes of `torch.nn`, or of a class made from one."""
        nn = sys.modules["torch"].nn
        classes = tuple(getattr(nn, name) for name in names if hasattr(nn, name))
        return self.layer is not None and issubclass(type(self.layer), classes)

    def name_of_layer(self) -> str:
        """Name the running module for a sentence: its path and class."""
        return self.module_words(self.layer)

    def module_words(self, module: Any) -> str:
        """Name a module for a sentence: its path and class, or its class alone."""
        name = self.module_path(module)
        return f"`{name}` ({type(module).__name__})" if name else f"the {type(module).__name__}"

    def module_path(self, module: Any) -> str:
        """Return the path of a module: that of the top level, else that of the failing line; empty without one."""
        own = (str(operand.ref) for operand in self.here.operands if operand.value is module)
        return top_level_name(self.facts, module) or next(own, "")

    def given(self, name: str) -> Part | None:
        """Describe what the running module was called with as this parameter, before its `forward` changed it."""
        call = self.layer_call
        if call is None:
            return None
        if call is self.calls[-1] and (node := self._argument(list(call.arguments), name)) is not None:
            written = self.part_of_node(node)
            if written is not None:
                return written
        return self.part_of_value(call.arguments.get(name))

    def part_of_value(self, value: Any) -> Part | None:
        """Describe a tensor that a library was given."""
        shape = shape_of(value) if kind_of_value(value) == "tensor" else None
        if shape is None:
            return None
        node = self._node_of(value, shape)
        if node is not None and kind_of_value(live := self.sizes.live(node)) == "tensor" and live is not value:
            return self.part_of_node(node)
        if node is None:
            node = next((o.node for o in self.here.operands if self.sizes.live(o.node) is value), None)
        path = self._path(value, node)
        if node is None and not path:
            return Part(self._giver(), "", shape, None, value)
        return Part(self._words(node, path), path, shape, node, value)

    def part_of_node(self, node: ast.expr | None) -> Part | None:
        """Describe a tensor by the expression it is written as."""
        shape = self.sizes.shape(node)
        if shape is None or node is None:
            return None
        live = self.sizes.live(node)
        value = live if kind_of_value(live) == "tensor" else None
        path = self._path(value, node) if value is not None else ""
        return Part(self._words(node, path), path, shape, node, value)

    def part_entered(self) -> Part | None:
        """Describe the only argument of the failing call, which a whole model may have been given."""
        call = self.call_node
        return self.part_of_node(call.args[0]) if call is not None and len(call.args) == 1 else None

    def _path(self, value: Any, node: ast.expr | None) -> str:
        """Return the top-level path of a tensor: the one on the line, when that is a variable of the notebook."""
        ref = ref_of(node)
        if ref is not None and self.here.is_top_level and self.facts.value(ref) is value:
            return str(ref)
        return top_level_name(self.facts, value)

    def _words(self, node: ast.expr | None, path: str) -> str:
        """Name a tensor as the line does; inside a function, with the variable of the notebook that it is."""
        local = first_words(self.source, node) if node is not None else path
        if not path or local == path or ref_of(node) is None:
            return f"`{local}`"
        if local.startswith("self."):
            return f"`{path}`"
        return f"`{local}` (your `{path}`)"

    def _node_of(self, value: Any, shape: Shape) -> ast.expr | None:
        """Return the argument of the failing call that a library was given as this value."""
        outer = self.calls[-1] if self.calls else None
        if outer is None:
            return None
        call = self.call_node
        names = [name for name, given in outer.arguments.items() if given is value]
        if "self" in names and call is not None and isinstance(call.func, ast.Attribute):
            return call.func.value
        node = self._argument([name for name in outer.arguments if name != "self"], next(iter(names), ""))
        if node is None or (live := self.sizes.live(node)) is value:
            return node
        if live is not MISSING:  # the library gave its parameter another value, or put a dimension of 1 around it
            return node if outer.module is self.layer is not None and _is_view(value, live) else None
        written = self.sizes.shape(node)
        passed_on = outer.module is not None and outer.module is not self.layer
        return node if written == shape or (written is None and not passed_on) else None

    def _argument(self, parameters: list[str], name: str) -> ast.expr | None:
        """Return the expression that the failing call hands over as a parameter."""
        call = self.call_node
        if call is None or name not in parameters or any(isinstance(given, ast.Starred) for given in call.args):
            return None
        index = parameters.index(name)
        by_name = (keyword.value for keyword in call.keywords if keyword.arg == name)
        return call.args[index] if index < len(call.args) else next(by_name, None)

    def _giver(self) -> str:
        """Say where a tensor without a name comes from: the layer before, in a Sequential."""
        modules = [call for call in self.calls if call.module is not None]
        inner = modules[0].module if modules else None
        for outer in modules:
            if outer.module is inner:
                continue
            if type(outer.module) is not sys.modules["torch"].nn.Sequential:
                break
            children = list(object.__getattribute__(outer.module, "_modules").values())
            places = [index for index, child in enumerate(children) if child is inner]
            if len(places) == 1 and places[0]:
                return f"what {self.module_words(children[places[0] - 1])} gives"
            inner = outer.module
        entered = self.call_node.args[0] if self.call_node is not None and len(self.call_node.args) == 1 else None
        if entered is None or inner is not self.calls[-1].module or self.sizes.live(entered) is not MISSING:
            return "what it is given"
        return f"`{first_words(self.source, entered)}`"


def _is_view(value: Any, whole: Any) -> bool:
    """Tell whether a tensor is all of another one in other dimensions."""
    if kind_of_value(whole) != "tensor" or value.numel() != whole.numel():
        return False
    base = value._base  # noqa: SLF001 (the same, public under no name)
    return base is not None and (base is whole or base is whole._base)  # noqa: SLF001
