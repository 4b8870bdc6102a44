"""dtype-mismatch: the cell ended because a dtype does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torchmagic.checking import Facts, Rule
from torchmagic.checking.described import described_operands
from torchmagic.findings import Finding
from torchmagic.mismatch import dtype_arguments, dtype_pairs
from torchmagic.mismatch.dtype_arrays import not_a_tensor, not_of_numbers
from torchmagic.mismatch.dtype_complaints import Complaint, complaint_of
from torchmagic.mismatch.refusal import Explained, Refusal, line_of, refusal_of

_FAMILIES: dict[Complaint, tuple[Callable[[Refusal], Explained | None], ...]] = {
    "array": (not_a_tensor,),
    "array dtype": (not_of_numbers,),
    "classes": (dtype_arguments.swapped, dtype_arguments.class_numbers),
    "probabilities": (dtype_arguments.class_probabilities,),
    "index": (dtype_arguments.index,),
    "mask": (dtype_arguments.mask,),
    "target": (dtype_arguments.loss_target,),
    "in place": (dtype_arguments.loss_target, dtype_pairs.in_place),
    "numbers": (dtype_arguments.swapped, dtype_arguments.numbers),
    "types differ": (dtype_pairs.types_differ,),
}


class DtypeMismatch(Rule):
    """The cell ended because torch met a dtype that the operation does not take.

    torch does not convert operands by itself, since that could hide a loss of precision. A layer computes in the dtype
    of its parameters, float32 as a rule, while an array of numpy's becomes a float64 tensor. Class numbers and indices
    are int64, masks are bool, the targets of a regression or of `binary_cross_entropy` are floats.

    Convert what came in, as early as you can: `x.float()` for the data, `y.long()` for class numbers, `y.float()` for
    targets that are numbers. The report names what stood on the line with its dtype, and the call to add.
    """

    bad = """
    import numpy as np
    import torch
    from torch import nn
    x = torch.from_numpy(np.ones((8, 4)))
    net = nn.Linear(4, 2)
    out = net(x)
    """
    good = """
    import numpy as np
    import torch
    from torch import nn
    x = torch.from_numpy(np.ones((8, 4)))
    net = nn.Linear(4, 2)
    out = net(x.float())
    """

    def subjects(self, facts: Facts) -> Iterator[tuple[Complaint, Refusal]]:
        """Return the statement that failed, when torch's complaint is about a dtype."""
        complaint = complaint_of(facts.error)
        refusal = refusal_of(facts) if complaint is not None else None
        if complaint is not None and refusal is not None:
            yield complaint, refusal

    def judge(self, facts: Facts, subject: tuple[Complaint, Refusal]) -> Iterator[Finding]:  # noqa: ARG002 (the failure has them)
        """Say which operand does not fit, and the call that converts it."""
        complaint, failure = subject
        explained = next((found for family in _FAMILIES[complaint] if (found := family(failure)) is not None), None)
        if explained is None:
            return
        yield Finding(
            rule=self.name(),
            level="note",
            subject=explained.subject,
            message=f"{explained.message}{failure.where()}",
            line=line_of(failure),
            others=explained.others,
            fix=explained.fix,
            operands=described_operands(failure.here),
            explains=True,
        )
