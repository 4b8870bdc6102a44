"""Operations that can make NaN or infinity out of finite numbers, forward or backward, as they stand in the text."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Hazard:
    """An operation of the text. `weight` says how much it is to be suspected; `advice` what to do about it."""

    name: str
    weight: int
    node: ast.expr
    advice: str
    argument: ast.expr | None = None


_FLOOR = "keep its argument away from 0"
_ANGLE = "keep its argument between -1 and 1"
_ROOT = "keep its argument above 0"
_ROW = "a row with nothing but -inf has no softmax: leave one entry open"
_DOMAIN = "keep its argument inside the domain"
_POWER = "a power below 1 has an infinite derivative at 0, and below 0 it is NaN"
_LOST = "what keeps its argument away from 0 is itself 0 in float16 when below 6e-8: add more, or compute in float32"
HALF_FLOOR = 2.0**-25
"""The greatest number that float16 rounds to 0."""
IGNORED = "where every label is ignored, it is the mean of nothing: skip such a batch"
_DIVISIONS = frozenset({"div", "divide", "true_divide"})
_SCALES = frozenset({"normalize", "cosine_similarity"})
"""Functions with a small number of their own, which float16 rounds to 0."""
_CALLS: dict[str, tuple[int, str]] = {
    **dict.fromkeys(("log", "log2", "log10"), (4, _FLOOR)),
    **dict.fromkeys(("sqrt", "rsqrt"), (4, _ROOT)),
    **dict.fromkeys(("acos", "arccos", "asin", "arcsin"), (4, _ANGLE)),
    **dict.fromkeys(("acosh", "atanh", "arctanh", "logit", "erfinv", "log1p"), (3, _DOMAIN)),
    **dict.fromkeys(("std", "var", "std_mean", "var_mean"), (3, "the deviation of a single value is NaN")),
    **dict.fromkeys(("reciprocal", *_DIVISIONS), (3, "keep the divisor away from 0")),
    **dict.fromkeys(("pow", "float_power"), (2, _POWER)),
    **dict.fromkeys(("eigh", "svd", "eig", "qr"), (2, "its derivative needs distinct values")),
    **dict.fromkeys(("inverse", "inv", "pinverse", "solve", "cholesky"), (2, "the matrix must not be singular")),
    **dict.fromkeys(("exp", "exp2", "expm1", "cosh", "sinh", "pct_change", "cumprod"), (2, "large arguments overflow")),
    "atan2": (2, "its derivative at (0, 0) is NaN"),
    "half": (2, "float16 ends at 65504: use bfloat16, or values that fit"),
    "lgamma": (1, "keep its argument above 0"),
    "norm": (1, "the norm of a zero vector is 0: do not divide by it without a small number added"),
    **dict.fromkeys(("softmax", "log_softmax", "logsumexp"), (1, _ROW)),
    "mean": (1, "the mean of nothing is NaN"),
}  # fmt: skip
_GREATER = frozenset({"max", "maximum"})
_LIBRARIES = frozenset({"torch", "np", "numpy", "F", "math"})
_SAFE_MODULES = frozenset({"math"})
_GUARDS = frozenset(
    {
        "clamp", "clamp_min", "clamp_", "clip", "softplus", "relu6", "eps", "nan_to_num", "len",
        "numel", "size", "float_eps", "finfo", "where", "item_count",
    }
)  # fmt: skip
_NONFINITE_NAMES = frozenset({"nan", "inf", "NaN", "NAN", "Inf", "NINF", "PINF", "infty"})
_EMPTY = frozenset({"empty", "empty_like", "new_empty", "empty_strided"})


def hazards(expression: ast.AST, floor: float = 0.0) -> Iterator[Hazard]:
    """Yield the operations in an expression that can make non-finite values, the guarded ones left out.

    A constant that is not above `floor`, what float16 rounds to 0, guards nothing.
    """
    for node in ast.walk(expression):
        found: Iterator[Hazard] = iter(())
        if isinstance(node, ast.Call):
            found = _call_hazards(node, floor)
        elif isinstance(node, ast.BinOp):
            found = _operator_hazards(node, floor)
        for hazard in found:
            is_lost = floor and hazard.weight > 1 and is_guarded(_kept_away(hazard))
            yield replace(hazard, advice=_LOST) if is_lost else hazard


def _kept_away(hazard: Hazard) -> ast.expr | None:
    """Return the part of an operation that a small number keeps away from 0."""
    divides = hazard.name in _DIVISIONS and isinstance(hazard.node, ast.Call) and hazard.node.args
    return hazard.node.args[-1] if divides else hazard.argument  # type: ignore[attr-defined]


def _call_hazards(node: ast.Call, floor: float) -> Iterator[Hazard]:
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    owner = function.value if isinstance(function, ast.Attribute) else None
    if isinstance(owner, ast.Name) and owner.id in _SAFE_MODULES:
        return  # Python's own functions raise instead
    method = owner is not None and not (isinstance(owner, ast.Name) and owner.id in _LIBRARIES)
    method = method and not (
        isinstance(owner, ast.Attribute) and owner.attr in ("linalg", "special", "functional", "init")
    )
    argument = owner if method else (node.args[0] if node.args else None)
    if _to_half(name, node):
        yield _hazard("half", node, argument)
    elif name in ("cross_entropy", "nll_loss") and any(k.arg == "ignore_index" for k in node.keywords):
        yield Hazard(name, 3, node, IGNORED)
    elif floor and name in _SCALES:
        yield Hazard(name, 3, node, _LOST, node.args[0] if node.args else None)
    elif name in _CALLS:
        divides = name in _DIVISIONS
        guarded = node.args[-1] if divides and node.args else argument
        if name in ("std", "var") and any(
            _is_number(k.value, 0) for k in node.keywords if k.arg in ("correction", "ddof")
        ):
            return
        if name in ("pow", "float_power") and not (node.args and _fractional(node.args[-1])):
            return
        if name in ("mean", "norm", "softmax", "log_softmax", "logsumexp") or not is_guarded(guarded, floor):
            yield _hazard(name, node, argument)


def _hazard(name: str, node: ast.expr, argument: ast.expr | None) -> Hazard:
    weight, advice = _CALLS[name]
    return Hazard(name, weight, node, advice, argument)


def _to_half(name: str, node: ast.Call) -> bool:
    wanted = [*node.args, *(k.value for k in node.keywords)]
    return name in ("to", "type", "astype", "tensor") and any(
        isinstance(part, ast.Attribute) and part.attr in ("float16", "half") for part in wanted
    )


def _operator_hazards(node: ast.BinOp, floor: float) -> Iterator[Hazard]:
    if isinstance(node.op, (ast.Div, ast.Mod, ast.FloorDiv)) and not is_guarded(node.right, floor):
        yield Hazard("/", 3, node, "keep the divisor away from 0", node.right)
    elif isinstance(node.op, ast.Pow) and _fractional(node.right):
        yield Hazard("**", 3, node, _POWER, node.left)


def _fractional(node: ast.expr) -> bool:
    try:
        power = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
    return isinstance(power, (int, float)) and (power < 1 or power != int(power))


def is_guarded(node: ast.expr | None, floor: float = 0.0) -> bool:
    """Tell whether an argument is kept away from the edge: a constant is added, it is clamped, or it is a size."""
    if node is None:
        return True
    if isinstance(node, ast.Constant):
        return not _is_number(node, 0)  # as large as it is, it is the whole divisor
    if isinstance(node, ast.Attribute) and node.attr in ("shape", "size", "ndim"):
        return True
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.UnaryOp):
        return is_guarded(node.operand, floor)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Add):
            return any(_is_small(part, floor) for part in (node.left, node.right))
        if isinstance(node.op, ast.Pow) and isinstance(node.left, ast.Name) and _fractional(node.right):
            return True  # `d ** 0.5`, the width that scores are scaled by
        return is_guarded(node.left, floor) and is_guarded(node.right, floor)
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if (
            name in _GUARDS
            or (name in _GREATER and _has_bound(node))
            or any(keyword.arg in ("eps", "min") for keyword in node.keywords)
        ):
            return _is_above(node, floor)
        math_call = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
        if math_call and node.func.value.id == "math":  # type: ignore[attr-defined]
            return True
        return name == "exp" or (
            name in ("float", "int", "sqrt", "abs", "std", "var") and any(is_guarded(part, floor) for part in node.args)
        )
    return False


def _has_bound(node: ast.Call) -> bool:
    """Tell whether a maximum is that of two values, `max(n, 1)`, and not the greatest one of a tensor: `x.max()`."""
    of_tensor = isinstance(node.func, ast.Attribute) and not (
        isinstance(node.func.value, ast.Name) and node.func.value.id in _LIBRARIES
    )
    bounds = node.args if of_tensor else node.args[1:]
    along = any(keyword.arg in ("dim", "axis", "keepdim") for keyword in node.keywords)
    is_dim = isinstance(node.func, ast.Attribute) and all(isinstance(_unsigned(part), int) for part in bounds)
    return bool(bounds) and not along and not is_dim


def _unsigned(node: ast.expr) -> object:
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return node.value if isinstance(node, ast.Constant) else None


def _is_above(guard: ast.Call, floor: float) -> bool:
    """Tell whether the constants of a clamp, if there are any, are not lost below `floor`."""
    given = [*guard.args, *(keyword.value for keyword in guard.keywords)]
    numbers = [part.value for part in given if isinstance(part, ast.Constant) and type(part.value) in (int, float)]
    return not floor or not numbers or max(numbers) > floor  # type: ignore[type-var, operator]


def _is_small(node: ast.expr, floor: float) -> bool:
    """Tell whether a summand is there for safety: a positive constant, or a name such as `eps`."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and node.value > floor
    if floor:
        return False  # what a name stands for may be lost
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return "eps" in name.lower() or "tiny" in name.lower()


def _is_number(node: ast.expr, number: float) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and node.value == number


def nonfinite_literal(expression: ast.AST | None) -> ast.expr | None:
    """Return a NaN or infinity that is written into an expression: `float("nan")`, `np.inf`, `-math.inf`."""
    for node in ast.walk(expression) if expression is not None else ():
        if isinstance(node, ast.expr) and _is_nonfinite(node):
            return node
    return None


def _is_nonfinite(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "float" and len(node.args) == 1:
        text = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
        return isinstance(text, str) and _parses_nonfinite(text)
    if isinstance(node, ast.Attribute):
        return node.attr in _NONFINITE_NAMES and isinstance(node.value, ast.Name)
    if isinstance(node, ast.Name):
        return node.id in ("nan", "inf")
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and not math.isfinite(node.value)


def _parses_nonfinite(text: str) -> bool:
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False


def is_uninitialised(expression: ast.AST | None) -> bool:
    """Tell whether an expression makes memory that nobody has written yet."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _EMPTY
        for node in (ast.walk(expression) if expression is not None else ())
    )
