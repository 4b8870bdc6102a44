"""What an operation was given when its result was not finite: names, sizes, and the values that explain it."""

from __future__ import annotations

import ast
import sys
from types import FrameType
from typing import Any, Final

from torchmagic.namespace.resolve import MISSING, resolve
from torchmagic.source.refs import ref_of
from torchmagic.tracing.events import Operand
from torchmagic.tracing.evidence import (
    DERIVATIVES,
    DIVISIONS,
    counted,
    is_readable,
    largest_of,
    seen_in,
    seen_in_result,
)
from torchmagic.tracing.expressions import statement_at
from torchmagic.tracing.lineage import is_tensor
from torchmagic.tracing.sites import variables_of

_MOST: Final = 6


def operands_of(
    operation: str, args: tuple[Any, ...], frame: FrameType | None, module: Any, written: tuple[int | str, ...] = ()
) -> tuple[Operand, ...]:
    """Describe the tensors among an operation's arguments, with the names that the user's line gives them.

    `module` is the one that was running, or None: tensors of its own are told by their attribute. `written` are the
    places of those that hold the result by now, and show of what they held only what the result tells.
    """
    tensors = [arg for arg in args if is_tensor(arg)]
    tensors += [item for arg in args if type(arg) in (list, tuple) for item in arg if is_tensor(item)]
    names = _names(frame) if frame is not None else {}
    own = _own_tensors(module)
    # A number divided by a tensor comes without the number: `reciprocal`, then a product.
    described = tuple(
        Operand(
            name=names.get(id(tensor), ""),
            words=words_for(tensor),
            seen=(
                seen := seen_in_result(operation, tensor) if index in written else _seen(operation, args, tensor, index)
            ),
            largest=largest_of(tensor.detach()) if not seen and index not in written and _is_float(tensor) else 0.0,
            # Parameters are often transposed on the way to an operation: the same memory under another shape.
            attribute=own.get(tensor.data_ptr(), "") if own and tensor.layout is sys.modules["torch"].strided else "",
        )
        for index, tensor in enumerate(tensors[:_MOST])
    )
    by_zero = operation in DIVISIONS and len(args) > 1 and type(args[1]) in (int, float) and args[1] == 0
    return (*described, Operand("", "", "it is exactly 0")) if by_zero else described


def saved_operands(node: Any, operation: str, texts: list[str]) -> tuple[Operand, ...]:
    """Describe what a node of the graph saved of its forward operation, where that explains its derivative.

    Read through `_raw_saved_*` (seen in torch 2.0 to 2.13), which runs no hook of the user's; what a hook packed is
    not opened. `texts` are what is written where the forward operation's operands stand.
    """
    if operation not in DERIVATIVES:
        return ()
    attribute, test = DERIVATIVES[operation]
    saved = getattr(node, f"_raw_saved_{attribute}", None)
    values = getattr(saved, "data", None) if getattr(saved, "unpack_hook", None) is None else None
    if values is None or not is_tensor(values) or not is_readable(values):
        return ()
    words = counted(test, values.detach())
    place = 1 if attribute == "other" else 0
    name = texts[place] if len(texts) > place else ""
    return (Operand(name, words_for(values), words),) if words else ()


def words_for(tensor: Any) -> str:
    """Return "float32 [128]", or "float32, one value"."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{dtype} {list(tensor.shape)}" if tensor.dim() else f"{dtype}, one value"


def _seen(operation: str, args: tuple[Any, ...], tensor: Any, index: int) -> str:
    if not tensor.numel():
        return "it has no values"
    return seen_in(operation, args, tensor.detach(), index) if is_readable(tensor) else ""


def _is_float(tensor: Any) -> bool:
    return bool(tensor.is_floating_point()) and is_readable(tensor)


def _names(frame: FrameType) -> dict[int, str]:
    """Return the paths of the tensors that the statement a frame is running names, by identity."""
    statement = statement_at(frame.f_code, frame.f_lasti)
    names: dict[int, str] = {}
    if statement is None:
        return names
    with variables_of(frame) as variables:
        for node in ast.walk(statement):
            ref = ref_of(node) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else None
            if ref is None or isinstance(getattr(node, "ctx", None), ast.Store):
                continue
            value = resolve(variables, ref.root, ref.steps)
            if value is not MISSING and is_tensor(value):
                names.setdefault(id(value), str(ref))
    return names


def _own_tensors(module: Any) -> dict[int, str]:
    """Return the names of a module's own parameters and buffers, by the address of their memory."""
    if module is None:
        return {}
    state = object.__getattribute__(module, "__dict__")
    held = [*state.get("_parameters", {}).items(), *state.get("_buffers", {}).items()]
    return {
        tensor.data_ptr(): name
        for name, tensor in held
        if is_tensor(tensor) and tensor.layout is sys.modules["torch"].strided and tensor.numel() and not tensor.is_meta
    }
