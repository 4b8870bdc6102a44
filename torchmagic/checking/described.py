"""What stands on the line that failed, in words: `float32 [3, 5] on cpu`, `a Linear on cuda:0`."""

from __future__ import annotations

from typing import Any

from torchmagic import devices
from torchmagic.checking.failing_line import FailingLine, Operand
from torchmagic.kinds import kind_of_value


def described_operands(line: FailingLine) -> dict[str, str]:
    """Describe the operands of a failing statement by their names, in the order of the text, each once."""
    homes = {home for operand in line.operands for home in _homes(operand)}
    return {str(operand.ref): described(operand.value, on=len(homes) > 1) for operand in line.operands}


def described(value: Any, *, on: bool = False) -> str:
    """Say what a tensor or module is: dtype and sizes, or the class; and where it is, when asked."""
    if kind_of_value(value) == "module":
        words = with_article(type(value).__name__)
        where = " and ".join(sorted(devices.devices_of_module(value))) if on else ""
    else:
        words = f"{dtype_word(value)} {sizes(value)}"
        where = (devices.device_of(value) or "") if on else ""
    return f"{words} on {where}" if where else words


def with_article(name: str) -> str:
    """Return a class's name with its article: `a Linear`, `an LSTM`."""
    vowel = name[:1] in "AEIOU" or name.startswith(("LSTM", "RNN", "MSE", "NLL"))
    return f"{'an' if vowel else 'a'} {name}"


def dtype_word(tensor: Any) -> str:
    """Return a tensor's dtype as people write it: `float32`."""
    return str(tensor.dtype).removeprefix("torch.")


def sizes(tensor: Any) -> str:
    """Return a tensor's shape as a list; a ragged dimension is a question mark."""
    try:
        return str(list(tensor.shape))
    except (RuntimeError, TypeError):
        return "[?]"


def _homes(operand: Operand) -> set[str]:
    if operand.kind == "module":
        return devices.devices_of_module(operand.value)
    home = devices.device_of(operand.value)
    return {home} if home is not None else set()
