"""What there is to look at in the result of each kind of operation, decided once for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

KEEPS: Final = 0
"""Finite operands make a finite result: nothing to look at while nothing bad is about."""
LOOKS: Final = 1
"""The result may be bad."""
WRITES: Final = 2
"""The result is written into operands, one or several, and may be bad."""
READS: Final = 3
"""The result is a number of Python's."""
SEEDS: Final = 4
"""The result is the first gradient of a backward pass, or made like one."""

_KEEPING: Final = frozenset(
    {
        "abs", "abs_", "adaptive_max_pool2d", "alias", "argmax", "argmin", "argsort", "as_strided", "bernoulli",
        "bernoulli_", "broadcast_to", "cat", "ceil", "chunk", "clamp", "clamp_", "clamp_max", "clamp_min", "clone",
        "constant_pad_nd", "contiguous", "cos", "detach", "detach_", "diagonal", "embedding", "expand", "expand_as",
        "flip", "floor", "gather", "hardtanh", "index", "index_select", "is_pinned", "leaky_relu", "masked_select",
        "max_pool2d_with_indices", "maximum", "minimum", "narrow", "neg", "neg_", "new_zeros", "new_ones", "normal_",
        "ones", "permute", "rand", "rand_like", "randint", "randn", "randn_like", "randperm", "random_",
        "reflection_pad1d", "reflection_pad2d", "relu", "relu_", "repeat", "repeat_interleave", "reshape", "roll",
        "round", "select", "select_backward", "sigmoid", "sign", "sin", "slice", "slice_backward", "sort", "split",
        "split_with_sizes", "squeeze", "stack", "t", "tanh", "threshold_backward", "topk", "transpose", "tril",
        "triu", "unbind", "unfold", "uniform_", "unsqueeze", "upsample_nearest2d", "view", "view_as", "where", "zero_",
        "zeros", "zeros_like", "_reshape_alias", "_unsafe_view", "trunc_normal_", "native_dropout", "constant",
    }
)  # fmt: skip
"""Operations that make no NaN and no infinity out of finite numbers, however large."""

_NO_NEW_NAN: Final = frozenset(
    {"add_", "sub_", "mul_", "copy_", "clamp_", "abs_", "neg_", "fill_", "lerp_", "index_put_", "index_copy_",
     "masked_fill_", "addcmul_", "index_add_", "scatter_add_", "scatter_", "masked_scatter_", "put_"}
)  # fmt: skip
"""Operations in place that make at most infinities out of finite numbers: NaN was there, or came in."""

_MAKERS: Final = frozenset({"lift_fresh", "full", "full_like", "scalar_tensor", "new_full", "fill", "tensor", "arange"})
_FILLS: Final = frozenset({"fill_", "masked_fill", "masked_fill_", "fill"})
_EMPTY: Final = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"})


@dataclass(frozen=True)
class Plan:
    """How to look at one operation.

    `name` is its name in the dispatcher without the overload. `writes` are the positions, and names where they are
    given by name only, of the operands it writes into. `is_view` tells that the result is memory of an operand.
    `operation` is kept so that its identity stays its own.
    """

    operation: Any
    look: int
    name: str
    writes: tuple[int | str, ...]
    is_view: bool

    @property
    def makes(self) -> bool:
        """Whether the result is what the user wrote, as numbers or lists."""
        return self.name in _MAKERS

    @property
    def fills(self) -> bool:
        """Whether it puts a number of the user's into a tensor."""
        return self.name in _FILLS

    @property
    def leaves_unwritten(self) -> bool:
        """Whether its result is whatever the memory held."""
        return self.name in _EMPTY

    @property
    def makes_no_nan(self) -> bool:
        """Whether NaN in its result must have been in an operand."""
        return self.name in _NO_NEW_NAN


def plan_of(operation: Any) -> Plan:
    """Read the schema of an operation of the dispatcher; those that take functions have none."""
    schema = getattr(operation, "_schema", None)  # what torch's own modes read
    if schema is None:
        return Plan(operation, LOOKS, str(operation.name()), (), is_view=False)
    name = schema.name.partition("::")[2]
    writes: list[int | str] = []
    aliased = False
    for index, argument in enumerate(schema.arguments):
        info = argument.alias_info
        if info is None:
            continue
        if info.is_write:
            writes.append(argument.name if argument.kwarg_only else index)
        else:
            aliased = True
    if name == "ones_like":
        look = SEEDS
    elif name == "_local_scalar_dense":
        look = READS
    elif name in _KEEPING and not (writes and name not in _KEEPING):
        look = KEEPS
    else:
        look = WRITES if writes else LOOKS
    return Plan(operation, look, name, tuple(writes), aliased and not writes)
