"""cross_entropy and nll_loss: rows that differ in number, class numbers of another form, numbers that are no class."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from torchmagic.kinds import kind_of_value
from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import Shape, listed

_SPEAKS = re.compile(
    r"batch_size|1D target|target (tensor )?expected|[Ee]xpected target size|spatial targets|out of bounds"
    r"|weight tensor|size mismatch|[Ss]izes? of|shape"
)


@dataclass(frozen=True)
class _Pair:
    """What a loss of classes was given: a number for every class, and the class numbers."""

    scores: Part
    labels: Part

    @property
    def classes(self) -> int:
        """How many classes the scores have."""
        return self.scores.shape[1 if len(self.scores.shape) > 1 else 0]


def class_loss(failure: Refusal) -> Explained | None:
    """Explain a loss over classes whose two sides do not go together."""
    call = failure.call_of("cross_entropy", "nll_loss")
    if call is None or not _SPEAKS.search(failure.text):
        return None
    scores = failure.part_of_value(call.arguments.get("input"))
    labels = failure.part_of_value(call.arguments.get("target"))
    if scores is None or labels is None or not scores.shape:
        return None
    pair = _Pair(scores, labels)
    if "out of bounds" in failure.text:
        return _no_such_class(failure, pair)
    if call.function == "nll_loss" and scores.shape == labels.shape and len(scores.shape) > 1:
        fact = f"{labels.text} is {listed(labels.shape)}: `nll_loss` takes class numbers, one for each row"
        return _said(
            failure, pair, f"{fact} of {scores.text}: `{failure.with_call(labels, '.argmax(1)')}` of one-hot rows"
        )
    if "weight tensor" in failure.text:
        return _weight(failure, pair, call.arguments.get("weight"))
    return _arrangement(failure, pair)


def _arrangement(failure: Refusal, pair: _Pair) -> Explained | None:
    scores, labels = pair.scores.shape, pair.labels.shape
    spatial = (scores[0], *scores[2:]) if len(scores) > 1 else ()
    if labels in (spatial, scores):
        return None
    if len(scores) > 2 and labels == scores[:-1]:
        call = ".transpose(1, 2)" if len(scores) == 3 else f".permute(0, {len(scores) - 1}, {_rest(len(scores))})"
        fact = f"{pair.scores.text} is {listed(scores)} and {pair.labels.text} {listed(labels)}: the classes belong in"
        return _about_scores(failure, pair, f"{fact} dimension 1", call)
    squeezed = _without_ones(labels, spatial)
    if squeezed is not None:
        rows = "row" if len(scores) == 2 else "place"
        fact = f"{pair.labels.text} is {listed(labels)}: class numbers come as {listed(spatial)}, one for each {rows}"
        return _about_labels(failure, pair, f"{fact} of {pair.scores.text}", f".squeeze({squeezed})")
    if len(scores) == 2 and len(labels) > 1 and _size(labels) == scores[0]:
        fact = f"{pair.labels.text} is {listed(labels)}: class numbers come as {listed(spatial)}, one for each row"
        return _about_labels(failure, pair, f"{fact} of {pair.scores.text} {listed(scores)}", ".reshape(-1)")
    if len(scores) == 3 and _size(scores[:2]) == _size(labels):
        fact = f"{pair.scores.text} is {listed(scores)}, and {pair.labels.text} has {_size(labels)} class numbers"
        return _about_scores(failure, pair, f"{fact}: one row for each", ".flatten(0, 1)")
    if not labels or scores[0] != labels[0]:
        return _rows(failure, pair)
    if len(labels) == 2 and len(scores) == 2:
        return _as_probabilities(failure, pair)
    wanted = f"{pair.labels.text} is {listed(labels)}: class numbers come as {listed(spatial)}"
    return _said(failure, pair, f"{wanted}, one for each place of {pair.scores.text} {listed(scores)}")


def _rows(failure: Refusal, pair: _Pair) -> Explained:
    scores, labels = pair.scores.shape, pair.labels.shape
    if len(scores) == 1:
        return _said(
            failure,
            pair,
            f"{pair.scores.text} is {listed(scores)}, the classes of one row, and {pair.labels.text} {listed(labels)}: "
            "was the batch's dimension squeezed away?",
            about=pair.scores,
        )
    fact = f"{pair.scores.text} has {scores[0]} row{_s(scores[0])} and {pair.labels.text} {labels[0] if labels else 1}"
    return _said(failure, pair, f"{fact}: dimension 0 must be the same", about=pair.scores)


def _as_probabilities(failure: Refusal, pair: _Pair) -> Explained:
    fact = f"{pair.labels.text} is {listed(pair.labels.shape)} and {pair.scores.text} {listed(pair.scores.shape)}"
    columns = f"with {pair.labels.shape[1]} columns for {pair.classes} classes"
    advice = f"class numbers come as {listed(pair.scores.shape[:1])}, probabilities with a column for each class"
    return _said(failure, pair, f"{fact}, {columns}: {advice}")


def _no_such_class(failure: Refusal, pair: _Pair) -> Explained | None:
    least, most = _ends(pair.labels.value)
    if least is None or most is None or (least >= 0 and most < pair.classes):
        return None
    last = pair.classes - 1
    names = "only class 0" if not last else f"the classes 0 to {last}"
    held = most if most > last else least
    fact = f"{pair.labels.text} holds {held}, and {pair.scores.text} {listed(pair.scores.shape)} has {names}"
    if most == pair.classes and least >= 1:
        return _about_labels(failure, pair, f"{fact}: the numbers begin at 0", " - 1", fixed=False)
    if most > last:
        more = most + 1
        if not last:
            advice = "one column is for a yes or no: `F.binary_cross_entropy_with_logits`, or give it a column a class"
        else:
            advice = f"the last layer must give {more} numbers, or the class numbers must stay below {pair.classes}"
        return _said(failure, pair, f"{fact}: {advice}")
    return _said(failure, pair, f"{fact}: to leave such rows out, `ignore_index={held}`")


def _weight(failure: Refusal, pair: _Pair, weight: Any) -> Explained | None:
    part = failure.part_of_value(weight)
    if part is None or part.shape == (pair.classes,):
        return None
    text = part.text if part.path else "the `weight` of the loss"
    sizes = f"{text} is {listed(part.shape)}, and {pair.scores.text} has {pair.classes} classes"
    return failure.explained(part if part.path else pair.scores, f"{sizes}: it takes one weight for each")


def _about_labels(failure: Refusal, pair: _Pair, fact: str, call: str, *, fixed: bool = True) -> Explained:
    text = failure.with_call(pair.labels, call)
    return _said(failure, pair, f"{fact}: `{text}`", failure.call_fix(pair.labels, call) if fixed else None)


def _about_scores(failure: Refusal, pair: _Pair, fact: str, call: str) -> Explained:
    text = failure.with_call(pair.scores, call)
    return _said(failure, pair, f"{fact}: `{text}`", failure.call_fix(pair.scores, call), about=pair.scores)


def _said(failure: Refusal, pair: _Pair, message: str, fix: Any = None, *, about: Part | None = None) -> Explained:
    first = about if about is not None else pair.labels
    other = pair.labels if first is pair.scores else pair.scores
    subject = first.path or other.path or failure.explained(first, "").subject
    return Explained(subject, message, fix, (other.path,) if other.path and other.path != subject else ())


def _without_ones(labels: Shape, wanted: Shape) -> int | None:
    """Return the dimension of size 1 without which the labels have the wanted sizes."""
    for dim, size in enumerate(labels):
        if dim and size == 1 and labels[:dim] + labels[dim + 1 :] == wanted:
            return dim
    return None


def _ends(labels: Any) -> tuple[int | None, int | None]:
    """Return the least and the greatest class number; None where there are no values to read."""
    try:
        if kind_of_value(labels) != "tensor" or labels.device.type == "meta" or labels.is_floating_point():
            return None, None
        return int(labels.min()), int(labels.max())
    except (RuntimeError, TypeError, NotImplementedError):
        return None, None


def _rest(dims: int) -> str:
    return ", ".join(str(dim) for dim in range(1, dims - 1))


def _size(shape: Shape) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def _s(number: int) -> str:
    return "" if number == 1 else "s"
