"""Which values of an operand explain a result that is not finite: zeros of a logarithm, a row masked everywhere."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from torchmagic.tracing.finite import is_without_memory
from torchmagic.tracing.lineage import is_tensor


class Test(NamedTuple):
    """Values to blame: what they are, in words, and how they are found."""

    words: str
    finds: Callable[[Any], Any]


_ZERO: Final = Test("exactly 0", lambda v: v == 0)
_NEGATIVE: Final = Test("below 0", lambda v: v < 0)
_OUTSIDE: Final = Test("outside -1 to 1", lambda v: v.abs() > 1)
_AT_ONE: Final = Test("1 or -1", lambda v: v.abs() == 1)
_INFINITE: Final = Test("+Inf", lambda v: v == math.inf)

_FIRST: Final[dict[str, tuple[Test, ...]]] = {
    **dict.fromkeys(("log", "log2", "log10", "logit"), (_ZERO, _NEGATIVE)),
    **dict.fromkeys(("sqrt",), (_NEGATIVE,)),
    **dict.fromkeys(("rsqrt",), (_NEGATIVE, _ZERO)),
    **dict.fromkeys(("acos", "asin", "atanh"), (_OUTSIDE, _AT_ONE)),
    "reciprocal": (_ZERO,),
}
"""Tests of the first operand, by the operation's name without a final underscore."""

_SECOND: Final[dict[str, tuple[Test, ...]]] = {
    **dict.fromkeys(("div", "true_divide", "_foreach_div"), (_ZERO,)),
    "xlogy": (_ZERO, _NEGATIVE),
}

_THIRD: Final[dict[str, tuple[Test, ...]]] = {"addcdiv": (_ZERO,)}

DIVISIONS: Final = frozenset({"div", "div_", "true_divide", "addcdiv", "addcdiv_", "reciprocal"})
"""Operations of which the operand to blame is a divisor."""

DERIVATIVES: Final[dict[str, tuple[str, Test]]] = {
    **dict.fromkeys(("log", "log2", "log10", "reciprocal", "rsqrt", "pow"), ("self", _ZERO)),
    **dict.fromkeys(("sqrt", "norm", "linalg_vector_norm"), ("result", _ZERO)),
    **dict.fromkeys(("acos", "asin", "atanh"), ("self", _AT_ONE)),
    "div": ("other", _ZERO),
    "exp": ("result", _INFINITE),
}
"""Where derivatives are infinite: what a node of the graph saved, and the test. A root is 0 where its operand is."""

_RESULTS: Final[dict[str, tuple[Test, ...]]] = {
    **dict.fromkeys(
        ("log_", "log2_", "log10_"),
        (Test("exactly 0", lambda v: v == -math.inf), Test("below 0", lambda v: v.isnan())),
    ),
    "sqrt_": (Test("below 0", lambda v: v.isnan()),),
    "rsqrt_": (Test("below 0", lambda v: v.isnan()), Test("exactly 0", lambda v: v == math.inf)),
    "reciprocal_": (Test("exactly 0", lambda v: v.isinf()),),
    **dict.fromkeys(("acos_", "asin_"), (Test("outside -1 to 1", lambda v: v.isnan()),)),
}
"""What values of a result tell of the operand that it was written over."""

OWN_NAN: Final = {"logdet": "it has a determinant below 0"}
"""Functions that put NaN into their result as a number of their own, and what explains it."""

SOFTMAXES: Final = frozenset({"_softmax", "_log_softmax", "_safe_softmax", "logsumexp"})
_LABELLED: Final = frozenset({"nll_loss_forward", "nll_loss2d_forward"})
_SPREADS: Final = frozenset({"std", "var", "std_mean", "var_mean"})
_MOST_READ: Final = 1 << 24


def is_readable(tensor: Any) -> bool:
    """Tell whether the values of a tensor can be read, and not too many of them."""
    torch = sys.modules["torch"]
    if (
        tensor.is_complex()
        or tensor.is_meta
        or tensor.layout is not torch.strided
        or tensor.is_quantized
        or is_without_memory(tensor)
    ):
        return False
    return bool(0 < tensor.numel() <= _MOST_READ)


def seen_in(operation: str, args: tuple[Any, ...], values: Any, index: int) -> str:
    """Say which values of the operand at `index` explain the result; nothing where none does."""
    for test in _tests(operation.removesuffix("_") if operation[:1] != "_" else operation, args, index):
        words = counted(test, values)
        if words:
            return words
    if index == 1 and operation == "_ctc_loss":
        return _unalignable(args)
    if index == 1 and operation in _LABELLED and len(args) > 4 and bool((values == args[4]).all()):
        return f"every label is {args[4]}, which the loss leaves out"
    if index:
        return ""
    if operation in SOFTMAXES:
        return _masked_rows(values, _dim(args))
    if operation == "native_layer_norm":
        return _constant_rows(values, args)
    if operation in _SPREADS:
        return _single(values, args)
    return ""


def seen_in_result(operation: str, result: Any) -> str:
    """Say what an operation in place was given, as far as its result tells: a logarithm is -Inf at 0, NaN below."""
    tests = _RESULTS.get(operation, ()) if is_readable(result) else ()
    found = next(filter(None, (counted(test, result.detach()) for test in tests)), "")
    return found.replace(" is ", " was ", 1).replace(" are ", " were ", 1)


def counted(test: Test, values: Any) -> str:
    """Say how many values a test finds; nothing when there are none."""
    return _share(int(test.finds(values).sum()), values.numel(), test.words)


def largest_of(values: Any) -> float:
    """Return the greatest finite magnitude of floating-point values."""
    torch = sys.modules["torch"]
    wide = values.float() if values.element_size() < 4 else values
    low, high = torch.aminmax(torch.nan_to_num(wide, nan=0.0, posinf=0.0, neginf=0.0))
    return float(max(-low.item(), high.item()))


def _tests(operation: str, args: tuple[Any, ...], index: int) -> tuple[Test, ...]:
    if index == 0:
        if operation == "pow" and _may_fail(args):
            return (_ZERO, _NEGATIVE)
        return _FIRST.get(operation, ())
    return (_SECOND if index == 1 else _THIRD if index == 2 else {}).get(operation, ())


def _may_fail(args: tuple[Any, ...]) -> bool:
    """Tell whether an exponent fails at 0 or below: a negative one, or one that is not whole."""
    exponent: Any = args[1] if len(args) > 1 else 2
    if is_tensor(exponent):
        return bool(((exponent < 0) | (exponent != exponent.floor())).any())
    return type(exponent) in (int, float) and bool(exponent < 0 or exponent != int(exponent))


def _masked_rows(values: Any, dim: int) -> str:
    """Say which rows of scores hold nothing but -inf."""
    if not values.dim():
        return ""
    if infinite := counted(_INFINITE, values):
        return infinite
    rows = (values == -math.inf).all(dim)
    count = int(rows.sum())
    if not count:
        return ""
    if not rows.dim():
        return "every score is -inf"
    first = rows.nonzero()[0].tolist()
    if count == 1:
        return f"{f'row {first[0]}' if len(first) == 1 else f'the row at {first}'} is masked everywhere"
    return f"{count:,} of {rows.numel():,} rows are masked everywhere"


def _single(values: Any, args: tuple[Any, ...]) -> str:
    """Say that there is only one value to tell a spread from."""
    dims: Any = args[1] if len(args) > 1 else None
    if values.numel() == 1:
        return "one value, and the spread of one value is 0 / 0"
    dims = [dims] if type(dims) is int else dims
    if type(dims) not in (list, tuple) or not dims or any(values.shape[dim] != 1 for dim in dims):
        return ""
    return f"its size along dim {', '.join(map(str, dims))} is 1, and the spread of one value is 0 / 0"


def _constant_rows(values: Any, args: tuple[Any, ...]) -> str:
    """Say that rows to normalize hold one value only, where nothing is added to their variance of 0."""
    sizes: Any = args[1] if len(args) > 1 else None
    if args[-1] != 0.0 or type(sizes) not in (list, tuple):
        return ""
    rows = values.reshape(-1, math.prod(sizes))
    count = int((rows == rows[:, :1]).all(1).sum())
    if not count:
        return ""
    return f"{count:,} of {len(rows):,} rows {'has' if count == 1 else 'have'} a variance of 0, and `eps` is 0"


def _unalignable(args: tuple[Any, ...]) -> str:
    """Say how many targets of a CTC loss are longer than their inputs."""
    lengths = [value.tolist() if is_tensor(value) else value for value in args[2:4]]
    if len(lengths) < 2 or any(type(value) not in (list, tuple) for value in lengths):
        return ""
    count = sum(target > steps for steps, target in zip(*lengths, strict=False))
    return (
        f"{count:,} of {len(lengths[0]):,} targets {'is' if count == 1 else 'are'} longer than the input"
        if count
        else ""
    )


def _dim(args: tuple[Any, ...]) -> int:
    dim: Any = args[1] if len(args) > 1 else -1
    if type(dim) in (list, tuple):
        dim = next(iter(dim), -1)
    return dim if type(dim) is int else -1


def _share(count: int, total: int, words: str) -> str:
    if not count:
        return ""
    if total == 1:
        return f"it is {words}"
    return f"{count:,} of {total:,} values {'is' if count == 1 else 'are'} {words}"
