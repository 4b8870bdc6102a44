"""Vectors of integers that belong on the host: indices and lengths, not labels."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.namespace import Seen
from torchmagic.source import ref_of
from torchmagic.source.refs import bare_name, read_names

_MAKES_INDICES = frozenset(
    {
        "randperm", "argsort", "argmax", "argmin", "topk", "nonzero", "where", "arange", "multinomial", "tril_indices",
        "triu_indices", "searchsorted", "bucketize",
    }
)  # fmt: skip
_TAKES_LENGTHS = frozenset({"pack_padded_sequence", "split", "split_with_sizes", "tensor_split"})


def is_host_index(facts: Facts, seen: Seen) -> bool:
    """Tell whether a vector of integers selects from other tensors or counts their parts.

    The text decides: what makes it, and what it is used for. Without a text, distinct values are taken for indices.
    """
    torch, tensor = sys.modules["torch"], seen.obj
    if tensor.dtype not in (torch.int64, torch.int32) or tensor.dim() != 1:
        return False
    if devices.device_of(tensor) != devices.HOST:
        return False
    if facts.program is None:
        return type(tensor) is torch.Tensor and bool(tensor.unique().numel() == tensor.numel())
    made = [write.value for write in facts.writes_to(seen) if write.value is not None]
    if any(isinstance(n, ast.Call) and bare_name(n.func) in _MAKES_INDICES for v in made for n in ast.walk(v)):
        return True
    paths = {place.text for place in seen.places}
    return any(str(ref_of(node)) in paths for node in _selectors(facts))


def _selectors(facts: Facts) -> Iterator[ast.AST]:
    """Yield the expressions that select from something in the program, or say how long its parts are."""
    for step in facts.program.steps if facts.program is not None else ():
        for own in step.own_expressions():
            for node in ast.walk(own):
                if isinstance(node, ast.Subscript) and read_names(node.slice):
                    yield from ast.walk(node.slice)
                elif isinstance(node, ast.Call) and bare_name(node.func) in _TAKES_LENGTHS:
                    for argument in [*node.args[1:], *(keyword.value for keyword in node.keywords)]:
                        yield from ast.walk(argument)
