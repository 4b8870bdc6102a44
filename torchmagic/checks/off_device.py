"""off-device: a tensor is not where it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torchmagic.calling.discarded import discarded_conversions
from torchmagic.checking import Facts, Rule
from torchmagic.findings import Finding
from torchmagic.namespace import Seen
from torchmagic.placement.added_later import added_after_move
from torchmagic.placement.at_failure import at_failure, failing_operands
from torchmagic.placement.attributes import left_in_modules
from torchmagic.placement.loss_modules import left_in_loss
from torchmagic.placement.made_in_place import made_in_place
from torchmagic.placement.misplaced import Misplaced
from torchmagic.placement.optimizers import left_in_optimizer
from torchmagic.placement.together import left_in_batch, used_together
from torchmagic.placement.wanted_device import off_wanted_device, strays_by_name

_Subject = tuple[Callable[[Facts, Any], Iterator[Misplaced]], Any]


class OffDevice(Rule):
    """A tensor or module is on another device than what it is used with.

    PyTorch computes only with operands on one device. What moves with `module.to(device)` are its registered
    parameters, buffers and submodules: a plain tensor attribute, layers in a Python list, the weight of a loss and the
    state of an optimizer built earlier stay where they were, and the error comes later, in another line.

    Move the one that was left behind: `x = x.to(device)` for a tensor, `register_buffer` for a constant of a module,
    `nn.ModuleList` for a list of layers, and build the optimizer after the move.
    """

    bad = """
    import torch
    from torch import nn
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.scale = torch.ones(3)
        def forward(self, x):
            return self.layer(x) * self.scale
    model = Scaled().to("meta")
    """
    good = """
    import torch
    from torch import nn
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.register_buffer("scale", torch.ones(3))
        def forward(self, x):
            return self.layer(x) * self.scale
    model = Scaled().to("meta")
    """

    def __init__(self) -> None:
        self._reported: set[int] = set()

    def subjects(self, facts: Facts) -> Iterator[_Subject]:
        """Return what can be judged, with the judge for it: the evidence that knows most about the cause first."""
        self._reported = {id(value) for value in discarded_conversions(facts)}
        classes: dict[type, list[Seen]] = {}
        for seen in facts.found.of_kind("module"):
            classes.setdefault(type(seen.obj), []).append(seen)
        for alike in classes.values():
            yield left_in_modules, alike
        for seen in facts.found.of_kind("optimizer"):
            yield left_in_optimizer, seen
        yield lambda known, _: at_failure(known), None
        yield lambda known, _: made_in_place(known), None
        for seen in facts.found.of_kind("module"):
            yield left_in_loss, seen
            yield added_after_move, seen
        if not failing_operands(facts):
            for seen in facts.found.of_kind("other"):
                yield left_in_batch, seen
            for step in facts.program.steps if facts.program is not None else ():
                yield used_together, step
        for strays in strays_by_name(facts):
            yield off_wanted_device, strays

    def judge(self, facts: Facts, subject: _Subject) -> Iterator[Finding]:
        """Report what is misplaced, unless a judge before did."""
        judge, thing = subject
        for misplaced in judge(facts, thing):
            if any(id(value) in self._reported for value in misplaced.objects):
                continue
            self._reported |= {id(value) for value in misplaced.objects}
            failed = any(operand.value is value for operand in failing_operands(facts) for value in misplaced.objects)
            yield Finding(
                rule=self.name(),
                level="error" if failed else misplaced.level,
                subject=misplaced.subject,
                message=f"`{misplaced.subject}`{' ' if misplaced.fact.startswith('is ') else ': '}{misplaced.fact}",
                line=misplaced.line,
                others=misplaced.others,
                evidence={"device": misplaced.device, "wanted": misplaced.wanted},
                fix=misplaced.fix,
                consequences=misplaced.consequences,
                operands=misplaced.operands,
                explains=failed,
            )
