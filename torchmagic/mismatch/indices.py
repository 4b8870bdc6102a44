"""Numbers that must lie in a range: rows of an Embedding, indices and masks of a tensor."""

from __future__ import annotations

import ast
import re
from typing import Any

from torchmagic.kinds import kind_of_value
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import listed

_INDEX = re.compile(r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)")
_MASK = re.compile(r"The shape of the mask \[([\d, ]+)\] at index (\d+) does not match")
_TOO_MANY = "too many indices for tensor"


def embedding(failure: Refusal) -> Explained | None:
    """Explain a number for which an Embedding has no row."""
    if not failure.is_layer("Embedding", "EmbeddingBag") or "out of range" not in failure.text:
        return None
    layer: Any = failure.layer
    part = failure.given("input")
    ends = _ends(part.value) if part is not None else None
    if part is None or ends is None:
        return None
    least, most = ends
    rows = layer.num_embeddings
    if least >= 0 and most < rows:
        return None
    held = most if most >= rows else least
    verb = "holds" if part.path or part.node is not None else "has"
    fact = f"{part.text} {verb} {held}, and {failure.name_of_layer()} has the rows 0 to {rows - 1}"
    advice = f": make it `nn.{type(layer).__name__}({most + 1}, {layer.embedding_dim})`, or check the numbers"
    return failure.explained(part, fact + (advice if held == most else ": check the numbers"))


def indexing(failure: Refusal) -> Explained | None:
    """Explain an index or a mask that a tensor does not have room for."""
    if failure.calls:
        return None
    for node in failure.expressions:
        explained = _subscript(failure, node) if isinstance(node, ast.Subscript) else None
        if explained is not None:
            return explained
    return None


def _subscript(failure: Refusal, node: ast.Subscript) -> Explained | None:
    part = failure.part_of_node(node.value)
    if part is None:
        return None
    start = f"{part.text} is {listed(part.shape)}"
    if (found := _INDEX.search(failure.text)) is not None:
        index, dim, size = (int(number) for number in found.groups())
        if dim >= len(part.shape) or part.shape[dim] != size:
            return None
        numbers = f"the indices 0 to {size - 1}" if size else "no index at all"
        return failure.explained(part, f"{start}: dimension {dim} has {numbers}, and {index} was asked for")
    if (found := _MASK.search(failure.text)) is not None:
        return _mask(failure, node, tuple(int(size) for size in found.group(1).split(",") if size.strip()), start)
    if failure.text.startswith(_TOO_MANY):
        number = len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1
        size = len(part.shape)
        have = f"{size} dimension{'' if size == 1 else 's'}"
        return (
            failure.explained(part, f"{start}, of {have}, and {number} indices were given") if number > size else None
        )
    return None


def _mask(failure: Refusal, node: ast.Subscript, sizes: tuple[int, ...], start: str) -> Explained | None:
    part, mask = failure.part_of_node(node.value), failure.part_of_node(node.slice)
    if part is None or mask is None or mask.shape != sizes:
        return None
    wanted = part.shape[: len(sizes)]
    fact = f"{mask.text} is {listed(sizes)} and {start}: a mask has the sizes of the dimensions it selects from"
    dim = next((d for d, (a, b) in enumerate(zip(sizes, wanted, strict=False)) if a != b), None)
    if dim is None:
        return failure.explained(mask, f"{fact}, of which there are {len(part.shape)}")
    fact = f"{fact}, and dimension {dim} is {wanted[dim]}, not {sizes[dim]}"
    places = [at for at in range(len(part.shape)) if part.shape[at : at + len(sizes)] == sizes]
    if len(places) != 1:
        return failure.explained(mask, fact)
    text = failure.with_call(part, f"[{':, ' * places[0]}{failure.with_call(mask, '')}]")
    return failure.explained(mask, f"{fact}: `{text}`", failure.fix(node, text))


def _ends(numbers: Any) -> tuple[int, int] | None:
    """Return the least and the greatest of a tensor's integers; None where there are none to read."""
    try:
        if kind_of_value(numbers) != "tensor" or numbers.device.type == "meta" or not numbers.numel():
            return None
        return int(numbers.min()), int(numbers.max())
    except (RuntimeError, TypeError, NotImplementedError):
        return None
