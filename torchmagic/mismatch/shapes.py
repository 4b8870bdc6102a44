"""Why torch refused an operation over sizes: the first family that recognises the failure explains it."""

from __future__ import annotations

import re
from collections.abc import Callable

from torchmagic.mismatch.attention import attention
from torchmagic.mismatch.broadcast import broadcast
from torchmagic.mismatch.class_loss import class_loss
from torchmagic.mismatch.convolution import convolution, direct_convolution, pooling
from torchmagic.mismatch.einsum import einsum
from torchmagic.mismatch.indices import embedding, indexing
from torchmagic.mismatch.joining import joining
from torchmagic.mismatch.linear import direct_linear, linear
from torchmagic.mismatch.matmul import matmul
from torchmagic.mismatch.normalization import normalization
from torchmagic.mismatch.paired_loss import paired_loss
from torchmagic.mismatch.recurrent import recurrent
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.reshaping import reshaping, unpacking
from torchmagic.mismatch.saved_sizes import not_a_number, saved_state, unequal_columns

_DTYPES = re.compile(r"dtype|scalar type|same type|floating point type|not implemented for|can't be cast")
_FAMILIES: tuple[Callable[[Refusal], Explained | None], ...] = (
    saved_state, joining, class_loss, paired_loss, linear, convolution, pooling, normalization, recurrent, attention,
    embedding, einsum, matmul, direct_linear, direct_convolution, broadcast, reshaping, unpacking, indexing,
    unequal_columns, not_a_number,
)  # fmt: skip


def explain(failure: Refusal) -> Explained | None:
    """Say which sizes do not fit; None when no family recognises the failure, or it is about dtypes."""
    if _DTYPES.search(failure.text):
        return None
    return next((explained for family in _FAMILIES if (explained := family(failure)) is not None), None)
