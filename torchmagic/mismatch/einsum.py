"""einsum: a letter stands for two sizes."""

from __future__ import annotations

import ast

from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import listed


def einsum(failure: Refusal) -> Explained | None:
    """Explain an `einsum` in which one letter has two sizes, or an operand another number of dimensions."""
    call = failure.call_node
    if call is None or failure.call_of("einsum") is None or len(call.args) < 2:
        return None
    formula = failure.sizes.value(call.args[0])
    if type(formula) is not str or "." in formula:
        return None
    terms = formula.replace(" ", "").partition("->")[0].split(",")
    parts = [failure.part_of_node(node) for node in call.args[1:] if not isinstance(node, ast.Starred)]
    if len(parts) != len(terms):
        return None
    known: dict[str, tuple[Part, int]] = {}
    for term, part in zip(terms, parts, strict=True):
        if part is None:
            continue
        if len(term) != len(part.shape):
            fact = (
                f"{part.text} is {listed(part.shape)}, of {len(part.shape)} dimensions, and `{term}` names {len(term)}"
            )
            return failure.explained(part, fact)
        for letter, size in zip(term, part.shape, strict=True):
            first, other = known.setdefault(letter, (part, size))
            if other != size and 1 not in (size, other):
                fact = f"{first.text} is {listed(first.shape)} and {part.text} {listed(part.shape)}"
                return failure.explained(first, f"{fact}: `{letter}` is {other} in the one and {size} in the other")
    return None
