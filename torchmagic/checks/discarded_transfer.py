"""discarded-transfer: the copy that a conversion returns is thrown away."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.autograd_graph import is_trained_leaf
from torchmagic.calling.discarded import Discarded, discarded
from torchmagic.checking import Facts, Rule
from torchmagic.findings import Finding, Fix, Level
from torchmagic.namespace.resolve import MISSING
from torchmagic.source import Step, ref_of
from torchmagic.source.edits import first_words, replace_all, spelled
from torchmagic.source.lost import element_loop, is_bound_for_nothing
from torchmagic.source.refs import bare_name
from torchmagic.source.scopes import is_displayed

_TO_A_DEVICE = frozenset({"to", "cuda", "xpu"})


class DiscardedTransfer(Rule):
    """A conversion of a tensor stands alone on its line, so its result is lost.

    `x.cuda()`, `x.to(device)`, `x.half()` or `x.detach()` on a tensor return a new tensor and leave `x` as it was.
    On a module the same line is right: `module.to(device)` moves the parameters of the module itself.

    Bind the result: `x = x.to(device)`.
    """

    needs_text = True
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

    def subjects(self, facts: Facts) -> Iterator[Discarded]:
        """Return the statements that are nothing but a conversion of a tensor."""
        return discarded(facts)

    def judge(self, facts: Facts, subject: Discarded) -> Iterator[Finding]:
        """Report the statement."""
        source = subject.step.scope.unit.source
        raised = any(frame.is_cell and frame.line == subject.line for frame in facts.failed_frames)
        if raised and subject.step.scope.unit.is_cell:
            return
        path, call = spelled(source, subject.receiver), first_words(source, subject.call)
        known = subject.value is not MISSING
        state = f", {_state(subject.value)}" if known else ""
        if subject.name:
            where = "the local name" if subject.step.scope.name else "the loop variable"
            fact = f"`{call}` returns a result that only {where} gets, where nothing reads it; what it came from stays"
        else:
            where = "this line" if subject.step.scope.unit.is_cell else f"a line of `{subject.step.scope.name}`"
            fact = f"`{call}` returns a result, which {where} drops, and leaves `{path}` as it is{state}"
        yield Finding(
            rule=self.name(),
            level=_level(subject),
            subject=subject.subject,
            line=subject.line,
            message=f"`{subject.subject}`: {fact}",
            evidence={"device": str(subject.value.device), "dtype": str(subject.value.dtype)} if known else {},
            fix=_fix(facts, subject),
        )


def _level(subject: Discarded) -> Level:
    """Say less about the last line of a cell, which may be there to be looked at; nobody looks at a moved copy."""
    return "note" if is_displayed(subject.step) and subject.method not in _TO_A_DEVICE else "warning"


def _fix(facts: Facts, subject: Discarded) -> Fix | None:
    """Bind the result, and that of every other such statement on the line."""
    source, line = subject.step.scope.unit.source, subject.step.line
    if subject.name or not subject.step.scope.unit.is_cell or subject.step.node is not _expression(subject):
        return None
    texts: dict[ast.expr, str] = {}
    for other in discarded(facts):
        if other.step.line == line and not other.name and _expression(other) is not None:
            holder = _holder(other.step, other.receiver)
            if holder is None:
                return None
            texts[other.call] = f"{holder} = {spelled(source, other.call)}"
    text = replace_all(source, line, texts)
    if text is None:
        return None
    is_leaf = subject.value is not MISSING and is_trained_leaf(subject.value)
    return Fix(text, "An optimizer built from the old tensor does not train the new one." if is_leaf else "")


def _holder(step: Step, receiver: ast.expr) -> str | None:
    """Write where the result has to go: to the path it came from; of a loop's element, to its key in the container.

    `for key, value in batch.items()` is over `batch[key]`; a loop over the elements alone knows no place for them.
    """
    source = step.scope.unit.source
    loop = element_loop(step, receiver.id) if isinstance(receiver, ast.Name) else None
    if loop is None or not is_bound_for_nothing(step, receiver.id):  # type: ignore[attr-defined]
        return spelled(source, receiver)
    is_items = isinstance(loop.iter, ast.Call) and bare_name(loop.iter.func) == "items"
    if is_items and isinstance(loop.target, ast.Tuple) and isinstance(loop.target.elts[0], ast.Name):
        container = loop.iter.func.value  # type: ignore[attr-defined]
        return f"{spelled(source, container)}[{loop.target.elts[0].id}]" if ref_of(container) is not None else None
    return None


def _expression(subject: Discarded) -> ast.stmt | None:
    """Return the statement where it is nothing but the conversion."""
    node = subject.step.node
    return node if isinstance(node, ast.Expr) and node.value is subject.call else None


def _state(tensor: object) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} on {tensor.device}"  # type: ignore[attr-defined]
