"""shape-mismatch: the cell failed because the sizes of two things do not fit together."""

from __future__ import annotations

from collections.abc import Iterator

from torchmagic.checking import Facts, Rule
from torchmagic.checking.described import described_operands
from torchmagic.findings import Finding
from torchmagic.mismatch.refusal import Refusal, line_of, refusal_of
from torchmagic.mismatch.shapes import explain


class ShapeMismatch(Rule):
    """The sizes of what a line puts together do not fit.

    Every operation has its rule for sizes. A Linear layer reads its features from the last dimension, a convolution
    its channels from dimension 1, `cross_entropy` wants a row of scores for each class number, `a @ b` the last
    dimension of `a` as large as the last but one of `b`, and `a + b` sizes that are equal, or 1, counted from the end.
    PyTorch's message tells numbers; which variable they belong to, and which of the two should change, it cannot say.

    Compare the sizes that the report names with what you meant each dimension to be: batch, time, channels, features.
    Then change the one that is wrong: the number in the layer, or the order of the dimensions of what comes in
    (`transpose`, `permute`, `flatten(1)`, `squeeze(1)`).
    """

    bad = """
    import torch
    from torch import nn
    images = torch.randn(16, 28, 28)
    model = nn.Sequential(nn.Flatten(), nn.Linear(28, 10))
    scores = model(images)
    """
    good = """
    import torch
    from torch import nn
    images = torch.randn(16, 28, 28)
    model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 10))
    scores = model(images)
    """

    def subjects(self, facts: Facts) -> Iterator[Refusal]:
        """Return the failure that ended the cell, when it may be about sizes."""
        failure = refusal_of(facts)
        if failure is not None:
            yield failure

    def judge(self, facts: Facts, subject: Refusal) -> Iterator[Finding]:
        """Say which sizes do not fit; the cell left nothing wrong behind, so it is a note that explains."""
        del facts
        explained = explain(subject)
        if explained is None:
            return
        yield Finding(
            rule=self.name(),
            level="note",
            subject=explained.subject,
            message=explained.message + subject.where(),
            line=line_of(subject),
            others=explained.others,
            fix=explained.fix,
            operands=described_operands(subject.here),
            explains=True,
        )
