"""Write a line of the cell anew so that an operation's argument stays inside its domain."""

from __future__ import annotations

import ast

from torchmagic.findings import Fix
from torchmagic.source.hazards import Hazard
from torchmagic.source.text import SourceText

_FLOOR = (".clamp_min(1e-12)", "Values below 1e-12 count as 1e-12, and get no gradient.")
_ANGLE = (".clamp(-1 + 1e-6, 1 - 1e-6)", "Values within 1e-6 of 1 or -1 are cut off there, and get no gradient.")
_BOUNDS = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt"), _FLOOR),
    **dict.fromkeys(("acos", "arccos", "asin", "arcsin"), _ANGLE),
}


def clamped_argument(hazard: Hazard) -> str | None:
    """Return the operation's argument, a plain path, clamped; None where there is no such repair."""
    argument = hazard.argument
    if hazard.name not in _BOUNDS or not isinstance(argument, (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    return ast.unparse(argument) + _BOUNDS[hazard.name][0]


def clamped(text: SourceText, hazard: Hazard) -> Fix | None:
    """Return the line with the operation's argument clamped; None where there is no such repair."""
    argument = hazard.argument
    if clamped_argument(hazard) is None or argument is None:
        return None
    if argument.end_lineno is None or argument.end_col_offset is None:
        return None
    bound, caveat = _BOUNDS[hazard.name]
    line = text.line(argument.end_lineno).encode()
    replaced = line[: argument.end_col_offset] + bound.encode() + line[argument.end_col_offset :]
    return Fix(replaced.decode().strip(), caveat)
