"""discarded-transfer: the copy that a conversion returns is thrown away."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import NamedTuple

from torchmagic.checking import Facts, Rule
from torchmagic.findings import Finding, Fix
from torchmagic.namespace.resolve import MISSING
from torchmagic.source import Ref, Step, ref_of

_CONVERSIONS = frozenset(
    {
        "to", "cuda", "cpu", "xpu", "half", "float", "double", "bfloat16", "int", "long", "short", "bool", "type",
        "type_as", "detach", "clone", "contiguous", "numpy", "pin_memory", "requires_grad",
    }
)  # fmt: skip


class _Statement(NamedTuple):
    step: Step
    call: ast.Call
    receiver: Ref
    method: str


class DiscardedTransfer(Rule):
    """A conversion of a tensor stands alone on its line, so its result is lost.

    `x.cuda()`, `x.to(device)`, `x.half()` or `x.detach()` on a tensor return a new tensor and leave `x` as it was.
    On a module the same line is right: `module.to(device)` moves the parameters of the module itself.

    Bind the result: `x = x.to(device)`.
    """

    bad = """
    import torch
    weights = torch.ones(3)
    weights.to("meta")
    """
    good = """
    import torch
    weights = torch.ones(3)
    weights = weights.to("meta")
    """

    def subjects(self, facts: Facts) -> Iterator[_Statement]:
        """Return the statements that are nothing but a conversion."""
        for step in facts.program.steps if facts.program is not None else ():
            call = step.node.value if isinstance(step.node, ast.Expr) else None
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _CONVERSIONS:
                receiver = ref_of(call.func.value)
                if receiver is not None and step.scope.unit.is_cell:
                    yield _Statement(step, call, receiver, call.func.attr)

    def judge(self, facts: Facts, subject: _Statement) -> Iterator[Finding]:
        """Flag the statement when the live object is a tensor that the call cannot have changed."""
        torch = sys.modules["torch"]
        value = facts.value(subject.receiver, subject.step.scope)
        if value is MISSING or not issubclass(type(value), torch.Tensor):
            return
        path, call = str(subject.receiver), ast.unparse(subject.call)
        yield Finding(
            rule=self.name(),
            level="warning",
            subject=path,
            line=subject.step.line,
            message=f"`{path}`: `{call}` returns a new tensor, and this line drops it; `{path}` is still {_state(value)}",
            evidence={"device": str(value.device), "dtype": str(value.dtype)},
            fix=Fix(f"{path} = {call}"),
        )


def _state(tensor: object) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} on {tensor.device}"  # type: ignore[attr-defined]
