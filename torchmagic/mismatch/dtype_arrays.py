"""A numpy array, a list or a frame stands where torch takes a tensor."""

from __future__ import annotations

import ast
import sys
from typing import Any

from torchmagic import devices
from torchmagic.checking.failing_line import value_at
from torchmagic.findings import Fix
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.source import ref_of
from torchmagic.source.edits import first_words, replace_all

_MOST_OBJECTS = 100_000
_WORDS = {"ndarray": "a numpy array", "DataFrame": "a pandas frame", "Series": "a pandas series", "list": "a list"}


def not_a_tensor(failure: Refusal) -> Explained | None:
    """Name the argument that is no tensor, and write the call that makes one of it."""
    given = [value for call in failure.calls for value in call.arguments.values() if type(value).__name__ in _WORDS]
    refused = given[0] if given else None
    found = _path_to(failure, refused) if refused is not None else None
    if found is None:
        return None
    node, inside = found
    value = f"{inside}.values" if type(refused).__name__ in ("DataFrame", "Series") else inside
    dtype = _dtype_for(failure, refused)
    call = f"torch.{'tensor' if value != inside else 'as_tensor'}({value}{dtype})"
    fix = None
    if failure.here.frame.is_cell and failure.facts.found.names.get("torch") is sys.modules["torch"]:
        text = replace_all(failure.source, failure.here.frame.line, {node: call})
        fix = Fix(text) if text is not None else None
    message = f"`{inside}` is {_WORDS[type(refused).__name__]}, and this call takes tensors: `{call}`"
    return Explained(inside, message, fix)


def not_of_numbers(failure: Refusal) -> Explained | None:
    """Say what an array of objects or texts holds that is no number."""
    node = failure.call_node.args[0] if failure.call_node is not None and failure.call_node.args else None
    ref = ref_of(node)
    array: Any = value_at(failure.facts, ref, failure.here.frame) if ref is not None else None
    if type(array) is not sys.modules["numpy"].ndarray or ref is None:
        return None
    fact = f"`{ref}` is an array of {'texts' if array.dtype.kind in 'US' else f'dtype {array.dtype}'}"
    odd = _first_odd(array) if array.dtype.kind == "O" else None
    if odd is not None:
        fact += f", and holds {odd}"
    elif array.dtype.kind == "O":
        call = f'{ref}.astype("float32")'
        text = replace_all(failure.source, failure.here.frame.line, {node: call}) if node is not None else None
        fix = Fix(text) if text is not None and failure.here.frame.is_cell else None
        return Explained(str(ref), f"{fact}, though all of it is numbers: `{call}`", fix)
    return Explained(str(ref), f"{fact}; a tensor holds numbers: turn it into numbers first")


def _first_odd(array: Any) -> str | None:
    """Name the first object of an array that is no number, with its place; None when all are numbers."""
    numpy = sys.modules["numpy"]
    for place, value in enumerate(array.ravel()[:_MOST_OBJECTS]):
        if type(value) not in (int, float, bool) and not issubclass(type(value), numpy.number):
            index = [int(i) for i in numpy.unravel_index(place, array.shape)]
            words = repr(value) if type(value) is str else "None" if value is None else f"a {type(value).__name__}"
            return f"{words[:40]} at {index}"
    return None


def _dtype_for(failure: Refusal, value: Any) -> str:
    """Name the dtype of the layer for an array of floats, which torch would make float64."""
    dtype = getattr(value, "dtype", "") if type(value).__module__.partition(".")[0] in ("numpy", "pandas") else ""
    floats = str(dtype) in ("float64", "float16", "")
    own = {tensor.dtype for tensor in devices.own_tensors(failure.layer)} if failure.layer is not None else set()
    return f", dtype={own.pop()}" if floats and len(own) == 1 else ""


def _path_to(failure: Refusal, wanted: Any) -> tuple[ast.expr, str] | None:
    for whole in failure.expressions:
        for node in ast.walk(whole):
            if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
                ref = ref_of(node)
                if ref is not None and value_at(failure.facts, ref, failure.here.frame) is wanted:
                    return node, str(ref)
    call = failure.call_node
    if call is not None and len(call.args) == 1:
        return call.args[0], first_words(failure.source, call.args[0])
    return None
