"""discarded-transfer: the copy that a conversion returns is thrown away."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.autograd_graph import is_trained_leaf
from torchmagic.calling.discarded import Discarded, discarded
from torchmagic.checking import Facts, Rule
from torchmagic.findings import Finding, Fix, Level
from torchmagic.namespace.resolve import MISSING
from torchmagic.source.edits import first_words, replace_all, spelled
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
        source = facts.source
        raised = any(frame.is_cell and frame.line == subject.step.line for frame in facts.failed_frames)
        if source is None or raised:
            return
        path, call = spelled(source, subject.receiver), first_words(source, subject.call)
        known = subject.value is not MISSING
        state = f", {_state(subject.value)}" if known else ""
        fact = f"`{call}` returns a result, which this line drops, and leaves `{path}` as it is{state}"
        yield Finding(
            rule=self.name(),
            level=_level(subject),
            subject=subject.subject,
            line=subject.step.line,
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
    texts: dict[ast.expr, str] = {
        other.call: f"{spelled(source, other.receiver)} = {spelled(source, other.call)}"
        for other in discarded(facts)
        if other.step.line == line
    }
    text = replace_all(source, line, texts)
    if text is None:
        return None
    is_leaf = subject.value is not MISSING and is_trained_leaf(subject.value)
    return Fix(text, "An optimizer built from the old tensor does not train the new one." if is_leaf else "")


def _state(tensor: object) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} on {tensor.device}"  # type: ignore[attr-defined]
