"""Losses that compare number with number, such as BCE and MSE: prediction and target have other sizes."""

from __future__ import annotations

from torchmagic.mismatch.broadcast import disagreement
from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import listed

_LOSSES = (
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
    "kl_div", "poisson_nll_loss", "soft_margin_loss",
)  # fmt: skip


def paired_loss(failure: Refusal) -> Explained | None:
    """Explain a loss that compares two tensors of different sizes."""
    call = failure.call_of(*_LOSSES)
    if call is None:
        return None
    guess = failure.part_of_value(call.arguments.get("input"))
    target = failure.part_of_value(call.arguments.get("target"))
    if guess is None or target is None or guess.shape == target.shape:
        return None
    fact = f"{guess.text} is {listed(guess.shape)} and {target.text} {listed(target.shape)}"
    call_text = _repair(guess, target)
    if call_text:
        fix = failure.call_fix(target, call_text)
        return _said(
            failure, guess, target, f"{fact}: they must be the same; `{failure.with_call(target, call_text)}`", fix
        )
    two = len(guess.shape) == 2 and guess.shape[:1] == target.shape
    if two and call.function.startswith("binary_cross_entropy"):
        columns = f"{guess.shape[1]} numbers a row are for `F.cross_entropy`; this loss takes one"
        return _said(failure, guess, target, f"{fact}: {columns}", None)
    dim = disagreement(guess.shape, target.shape)
    strict = call.function.startswith("binary_cross_entropy")
    if dim is None and not strict:
        return None
    end = f"dimension {dim} must be the same" if dim is not None and _same_length(guess, target) else "they must agree"
    return _said(failure, guess, target, f"{fact}: {end}", None)


def _repair(guess: Part, target: Part) -> str:
    """Return the call that gives the target the sizes of the prediction without changing what is compared."""
    if (*target.shape, 1) == guess.shape:
        call = ".unsqueeze(-1)" if len(target.shape) > 1 else ".unsqueeze(1)"
    elif target.shape == (*guess.shape, 1):
        call = ".squeeze(-1)" if len(guess.shape) > 1 else ".squeeze(1)"
    else:
        return ""
    floating = target.value is None or target.value.is_floating_point()
    return call if floating else f"{call}.float()"


def _same_length(guess: Part, target: Part) -> bool:
    return len(guess.shape) == len(target.shape)


def _said(failure: Refusal, guess: Part, target: Part, message: str, fix: object) -> Explained:
    made = failure.explained(failure.first_named(guess, target), message)
    others = (target.path,) if target.path and target.path != made.subject else ()
    return Explained(made.subject, message, fix, others)  # type: ignore[arg-type]
