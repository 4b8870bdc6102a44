"""What calls of torch fill: gradients by a backward pass, parameters by a step, buffers by a call of their module."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchmagic.source.bindings import NO_VALUES
from torchmagic.source.definitions import GRAD, Definition, Frame
from torchmagic.source.inlining import Inlining
from torchmagic.source.operations import call_name
from torchmagic.source.program import Program
from torchmagic.source.refs import Ref, ref_of
from torchmagic.source.scopes import Scope, Step

_CHANGED = ("module", "stateful", "object")
"""What a call that stands alone may change."""


class Filling(Inlining):
    """Notes what calls fill; see `Flow` for the arguments."""

    def __init__(
        self,
        program: Program,
        cell: Scope,
        kind_of: Callable[[Ref], str],
        runs: Callable[[Ref, Scope, Scope, bool], bool],
    ) -> None:
        super().__init__(program, cell, kind_of, runs)
        self.losses: set[str] = set()
        """The variables whose backward pass is run."""

    def _effects(self, node: ast.Call, held: set[Definition], frame: Frame, step: Step) -> None:
        name, receiver = call_name(node), ref_of(node.func.value) if isinstance(node.func, ast.Attribute) else None
        if name.endswith("backward"):
            self._backward(node, receiver, held, frame, step)
            return
        paths = [ref for ref in [receiver, *map(ref_of, node.args), ref_of(node.func)] if ref is not None]
        kinds = [(path, self._kind(path, frame)) for path in paths]
        if name == "step" and any(kind == "optimizer" for _, kind in kinds):
            self._step(node, [path for path, kind in kinds if kind == "optimizer"], frame, step)
            return
        alone = isinstance(step.node, ast.Expr) and step.node.value is node and name not in NO_VALUES
        for path, kind in kinds:
            called = kind == "stateful" and path == ref_of(node.func)
            loaded = name == "load_state_dict" and path == receiver
            if called or loaded or (alone and kind in _CHANGED and path != ref_of(node.func)):
                self._fill(path, node, held, frame, step)

    def _fill(
        self, path: Ref, node: ast.Call, needs: set[Definition], frame: Frame, step: Step, *, how: str = "call"
    ) -> None:
        """Note that a call adds to what a path holds."""
        owner, ref = self._owner(path, frame)
        key = self._key(owner, ref)
        made = self._define(owner, key, how, step=step, needs=needs, node=node, frame=frame)
        self._put(owner, key, made, rebinds=False)

    def _kind(self, ref: Ref, frame: Frame) -> str:
        owner, ref = self._owner(ref, frame)
        if owner is self.cell and not ref.root.startswith("<new"):
            return self._kind_of(ref)
        made = (definition.value for definition in owner.lookup(self._key(owner, ref)))
        return "optimizer" if any(_makes_optimizer(value) for value in made) else ""

    def _backward(self, node: ast.Call, receiver: Ref | None, held: set[Definition], frame: Frame, step: Step) -> None:
        held = held | (self._read(receiver, frame) if receiver is not None else self._value(node.func, frame, step))
        named = receiver is not None or any(isinstance(argument, ast.Name) for argument in node.args)
        if named:
            self.losses |= {definition.key for definition in held if definition.top and definition.how != "entry"}
        keys = set()
        for start in held:
            for definition in start.upstream(hidden=True):
                if definition.top and self._kind_of(_path(definition.key)) in ("module", "stateful", "leaf", "object"):
                    keys.add(definition.key)
        for key in sorted(keys):
            made = self._define(
                self.cell, key + GRAD, "backward", step=step, needs=held, value=node, node=node, frame=frame
            )
            self._put(self.cell, key + GRAD, made, rebinds=False)

    def _step(self, node: ast.Call, optimizers: list[Ref], frame: Frame, step: Step) -> None:
        with_gradients = [
            key
            for key in self.cell.names
            if key.endswith(GRAD) and self._kind_of(_path(key.removesuffix(GRAD))) != "object"
        ]
        for key in with_gradients:
            base = key.removesuffix(GRAD)
            made = self._define(self.cell, base, "step", step=step, needs=self.cell.names[key], node=node, frame=frame)
            self._put(self.cell, base, made, rebinds=False)
        for path in optimizers:
            needs = {definition for key in with_gradients for definition in self.cell.names[key]}
            self._fill(path, node, needs, frame, step, how="step")


def _path(key: str) -> Ref:
    root, _, attribute = key.partition(".")
    return Ref(root, (("attr", attribute),) if attribute else ())


def _makes_optimizer(value: ast.expr | None) -> bool:
    """Tell whether an expression constructs one of torch's optimizers: `torch.optim.SGD(...)`."""
    ref = ref_of(value.func) if isinstance(value, ast.Call) else None
    if ref is None or ("attr", "lr_scheduler") in ref.steps:
        return False
    return ref.root == "optim" or ("attr", "optim") in ref.steps
