"""non-finite: NaN or infinity where a number should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from torchmagic.checking import Facts, Rule
from torchmagic.findings import Finding, Fix, Level
from torchmagic.nonfinite.advice import blame_words
from torchmagic.nonfinite.outbreaks import Outbreak, Outbreaks
from torchmagic.nonfinite.told import HOW_TO_TRACE, Told, told_by_trace
from torchmagic.source.repairs import clamped, clamped_argument
from torchmagic.values import Counts

_MOST_REACHED = 2


class NonFinite(Rule):
    """NaN or infinity stands where a number should be.

    It spreads: one NaN in a batch makes the loss NaN, one backward pass makes every gradient NaN, one step makes every
    weight NaN, and nothing raises an error. What counts is where it began. It came in with the data, or an operation
    left its domain (the logarithm of 0, the root of 0 in the backward pass, 0 / 0, a softmax over nothing but -inf), or
    numbers grew until they overflowed, as they do when the learning rate is too high.

    For data, look at the rows and fill or drop them. For an operation, keep its argument inside the domain: a small
    number added, a clamp, a mask before the operation and not after it. For growth, lower the learning rate, clip the
    gradients, or start from smaller weights.

    `%%torchcheck --trace` watches the operations of the cell and names the one it began with.
    """

    bad = """
    import torch
    p = torch.tensor([0.5, 0.5, 0.0])
    entropy = -(p * torch.log(p)).sum()
    """
    good = """
    import torch
    p = torch.tensor([0.5, 0.5, 0.0])
    entropy = -torch.xlogy(p, p).sum()
    """

    def subjects(self, facts: Facts) -> Iterable[Outbreak]:
        """Return the groups of bad values that hang together."""
        return Outbreaks(facts).all()

    def judge(self, facts: Facts, subject: Outbreak) -> Iterator[Finding]:
        """Flag the value where a group began; those it reached are its consequences."""
        root, counts = subject.root, subject.root.counts
        level: Level = "note" if not subject.harmful else "error" if subject.training else "warning"
        fix = _fix(facts, subject)
        told = told_by_trace(facts, subject, fix)
        if told is None:
            told = Told(subject.line, subject.cause, _reason_words(subject, fix), _hint(facts, subject))
        yield Finding(
            rule=self.name(),
            level=level,
            subject=root.subject,
            line=told.line,
            cause=told.cause,
            message=f"`{root.subject}`: {_count_words(counts)}{_reach_words(subject)}{told.reason}",
            fix=fix if told.line == subject.line else None,
            details=told.details,
            evidence={
                "nan": counts.nan,
                "inf": counts.positive,
                "-inf": counts.negative,
                "count": counts.total,
                "first": list(counts.first) if counts.first is not None else None,
                "operation": subject.suspect.hazard.name if subject.suspect is not None else None,
                **told.evidence,
            },
            consequences=tuple(_reached(subject)),
        )


def _fix(facts: Facts, subject: Outbreak) -> Fix | None:
    """Clamp the argument of the one operation to blame, when its live argument proves it guilty."""
    suspect = subject.suspect
    if suspect is None or not suspect.edge or not suspect.alone or facts.source is None or suspect.line != subject.line:
        return None
    if str(getattr(subject.root.obj, "dtype", "")) == "torch.float16":
        return None  # the bound would be rounded to 0
    return clamped(facts.source, suspect.hazard)


def _hint(facts: Facts, subject: Outbreak) -> tuple[str, ...]:
    """Say how to find the operation, where something that operations made goes back to this cell."""
    computed = any(value.role != "array" for value in (subject.root, *subject.reached))
    wanted = subject.harmful and subject.line is not None and computed and facts.trace is None
    return (HOW_TO_TRACE,) if wanted and facts.source is not None else ()


def _count_words(counts: Counts) -> str:
    kinds = ((counts.nan, "NaN"), (counts.positive, "+Inf"), (counts.negative, "-Inf"))
    present = [(number, word) for number, word in kinds if number]
    if counts.total == 1:
        return f"the value is {present[0][1]}"
    parts = [
        f"{number} of {counts.total} values {'is' if number == 1 else 'are'} {word}" for number, word in present[:1]
    ]
    parts += [f"{number} {word}" for number, word in present[1:]]
    first = f", first at {list(counts.first)}" if counts.first else ""
    return ", ".join(parts) + first


def _reach_words(subject: Outbreak) -> str:
    names = _reached(subject)
    if not names or not subject.harmful:
        return ""
    shown = [f"`{name}`" for name in names[:_MOST_REACHED]]
    if len(names) > _MOST_REACHED:
        return f"; it reached {', '.join(shown)} and {len(names) - _MOST_REACHED} more"
    return f"; it reached {' and '.join(shown)}"


def _reached(subject: Outbreak) -> list[str]:
    """Return the paths that a root reached; several entries of one list or dict are told of as the list or dict."""
    values = [value for value in subject.reached if value.subject != subject.root.subject]
    entries = Counter(id(value.place.owner) for value in values if value.place.role == "item")
    names = []
    for value in values:
        is_one_of_many = value.place.role == "item" and entries[id(value.place.owner)] > 1
        parent = value.place.parent if is_one_of_many else None
        names.append(parent.text if parent is not None else value.subject)
    return list(dict.fromkeys(names))


def _reason_words(subject: Outbreak, fix: Fix | None) -> str:
    if not subject.harmful:
        return ""
    if subject.cause == "data":
        return "; they came in with the data: find those rows, and fill or drop them"
    if subject.cause == "explosion":
        growth = f" from {subject.growth[0]:.3g} to {subject.growth[1]:.3g}" if subject.growth is not None else ""
        return f"; numbers grew{growth} until they overflowed: lower the learning rate, clip gradients or start smaller"
    if subject.suspect is not None:
        repair = clamped_argument(subject.suspect.hazard) if fix is not None else None
        return f"; {blame_words(subject.suspect, repair)}"
    return ""
