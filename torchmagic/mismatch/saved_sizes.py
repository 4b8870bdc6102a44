"""Whole sets of tensors whose sizes differ: a saved state and its model, the columns of a TensorDataset."""

from __future__ import annotations

import ast
import re
from typing import Any

from torchmagic.checking.failing_line import top_level_name
from torchmagic.kinds import kind_of_value
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.namespace.resolve import MISSING, get_attribute

_PARAMETER = re.compile(
    r"size mismatch for (\S+): copying a param with shape torch\.Size\(\[([\d, ]*)\]\) from checkpoint, "
    r"the shape in current model is torch\.Size\(\[([\d, ]*)\]\)"
)


def saved_state(failure: Refusal) -> Explained | None:
    """Explain a state that was saved from a model of other sizes."""
    call = failure.call_of("load_state_dict")
    found = _PARAMETER.findall(failure.text)
    if call is None or call.module is None or not found:
        return None
    name, saved, now = found[0]
    path = failure.module_path(call.module)
    subject = top_level_name(failure.facts, _at(call.module, name)) or (f"{path}.{name}" if path else name)
    more = f" ({len(found) - 1} more like it)" if len(found) > 1 else ""
    fact = f"`{subject}` is [{now}], and [{saved}] in what is loaded{more}"
    return Explained(subject, f"{fact}: build the model as it was when it was saved", None, (path,) if path else ())


def _at(module: Any, name: str) -> Any:
    """Return the parameter or buffer of a module by its name in a state."""
    for step in name.split("."):
        module = get_attribute(module, step) if module is not MISSING else MISSING
    return module


def unequal_columns(failure: Refusal) -> Explained | None:
    """Explain a TensorDataset whose tensors have different numbers of rows."""
    if not failure.text.startswith("Size mismatch between tensors") or failure.call_node is None:
        return None
    written = [argument for argument in failure.call_node.args if not isinstance(argument, ast.Starred)]
    parts = [part for argument in written if (part := failure.part_of_node(argument)) is not None and part.shape]
    odd = next((part for part in parts if part.shape[0] != parts[0].shape[0]), None)
    if odd is None:
        return None
    first = parts[0]
    fact = f"{first.text} has {first.shape[0]} rows and {odd.text} {odd.shape[0]}"
    return failure.explained(first, f"{fact}: each row of a data set takes one from every tensor")


def not_a_number(failure: Refusal) -> Explained | None:
    """Explain a tensor of many values where one number is needed: `backward()`, `item()`, `if x > 0`."""
    node = failure.here.step.node
    if "implicitly created only for scalar outputs" in failure.text:
        call = failure.call_of("backward")
        value = call.arguments.get("self") if call is not None else None
        part = failure.part_of_value(value) if kind_of_value(value) == "tensor" else None
        if part is None:
            return None
        shorter = failure.with_call(part, ".mean()")
        fact = f"{part.text} is {list(part.shape)}, and `backward()` starts from one number"
        return failure.explained(part, f"{fact}: `{shorter}.backward()`, or `.sum()`") if node is not None else None
    if "cannot be converted to Scalar" not in failure.text:
        return None
    call_node = failure.call_node
    owner = call_node.func.value if call_node is not None and isinstance(call_node.func, ast.Attribute) else None
    part = failure.part_of_node(owner)
    if part is None or part.shape in ((), (1,)):
        return None
    return failure.explained(
        part, f"{part.text} is {list(part.shape)}, and `item()` takes one number: `.tolist()`, or reduce it"
    )
