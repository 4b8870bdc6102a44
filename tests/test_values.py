"""Reading values: every kind of tensor and array, counted exactly, and nothing but counted."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torchmagic.values import Counts, count_array, count_number, count_tensor

NAN, INF = float("nan"), float("inf")


def planted(shape: tuple[int, ...], at: tuple[int, ...], value: float) -> torch.Tensor:
    tensor = torch.zeros(shape)
    tensor[at] = value
    return tensor


BAD = {
    "nan": (planted((3, 5), (1, 2), NAN), Counts(15, 1, 0, 0, (1, 2), 0.0)),
    "one number": (torch.tensor(-INF), Counts(1, 0, 0, 1, (), 0.0)),
    "transposed": (planted((3, 5), (1, 2), INF).t(), Counts(15, 0, 1, 0, (2, 1), 0.0)),
    "many rows": (planted((1000, 1000), (712, 9), -INF), Counts(1_000_000, 0, 0, 1, (712, 9), 0.0)),
    "long rows": (planted((2, 300_000), (1, 250_000), NAN), Counts(600_000, 1, 0, 0, (1, 250_000), 0.0)),
    "half": (torch.tensor([6e4, 1e6]).half(), Counts(2, 0, 1, 0, (1,), 60_000.0)),
    "bfloat16": (torch.tensor([2.0, NAN]).bfloat16(), Counts(2, 1, 0, 0, (1,), 2.0)),
    "float8": (torch.tensor([1.0, NAN]).to(torch.float8_e4m3fn), Counts(2, 1, 0, 0, (1,), 1.0)),
    "expanded": (torch.tensor([1.0, NAN]).expand(1000, 2), Counts(2000, 1000, 0, 0, (0, 1), 1.0)),
    "complex": (torch.tensor([1 + 0j, complex(0, NAN)]), Counts(2, 1, 0, 0, (1,), 1.0)),
    "conjugated": (torch.tensor([1 + 0j, complex(0, NAN)]).conj(), Counts(2, 1, 0, 0, (1,), 1.0)),
    "sparse": (planted((4, 4), (1, 1), NAN).to_sparse(), Counts(1, 1, 0, 0, None, 0.0)),
    "compressed": (planted((4, 4), (1, 1), NAN).to_sparse_csr(), Counts(1, 1, 0, 0, None, 0.0)),
    "parameter": (torch.nn.Parameter(torch.tensor([NAN])), Counts(1, 1, 0, 0, (0,), 0.0)),
}


@pytest.mark.parametrize(("tensor", "counts"), BAD.values(), ids=BAD)
def test_bad_values_are_counted(tensor: torch.Tensor, counts: Counts) -> None:
    """How many of each sort, where the first one is, and the greatest finite magnitude."""
    assert count_tensor(tensor) == counts


UNREAD = {
    "finite": torch.full((3,), 3e38),
    "empty": torch.empty(0, 3),
    "integers": torch.arange(3),
    "meta": torch.empty(3, device="meta"),
    "mkldnn": torch.ones(2).to_mkldnn(),
    "uninitialised parameter": torch.nn.parameter.UninitializedParameter(),
}


@pytest.mark.parametrize("tensor", UNREAD.values(), ids=UNREAD)
def test_finite_and_unreadable_tensors_have_no_counts(tensor: torch.Tensor) -> None:
    """A tensor that is finite, or has no values to read, is passed over."""
    assert count_tensor(tensor) is None


def test_nested_tensors_are_read_by_their_rows() -> None:
    """Both layouts of ragged tensors."""
    rows = [torch.ones(2), torch.tensor([1.0, NAN, 2.0])]

    for layout in (torch.strided, torch.jagged):
        assert count_tensor(torch.nested.nested_tensor(rows, layout=layout)) == Counts(5, 1, 0, 0, None, 2.0)


def test_subclasses_that_handle_operations_are_not_asked() -> None:
    """No operation reaches a tensor subclass with a dispatch of its own."""
    asked = []

    class Odd(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            asked.append(func)
            return super().__torch_dispatch__(func, types, args, kwargs)

    odd = torch.Tensor._make_subclass(Odd, torch.tensor([NAN]))
    asked.clear()

    assert count_tensor(odd) is None
    assert asked == []


ARRAYS = {
    "float64": (np.array([1.0, np.nan]), Counts(2, 1, 0, 0, (1,), 1.0)),
    "backwards": (np.array([1.0, np.inf])[::-1], Counts(2, 0, 1, 0, (0,), 1.0)),
    "big endian": (np.array([1.0, np.nan], dtype=">f4"), Counts(2, 1, 0, 0, (1,), 1.0)),
    "complex": (np.array([1j, complex(0, np.nan)]), Counts(2, 1, 0, 0, (1,), 1.0)),
    "finite": (np.arange(3.0), None),
    "integers": (np.arange(3), None),
    "text": (np.array(["nan"]), None),
    "masked": (np.ma.masked_invalid(np.array([1.0, np.nan])), None),
}


@pytest.mark.parametrize(("array", "counts"), ARRAYS.values(), ids=ARRAYS)
def test_arrays_are_counted(array: np.ndarray, counts: Counts | None) -> None:
    """Arrays of every order and precision; masked ones hide their values on purpose."""
    assert count_array(array) == counts


def test_reading_leaves_no_trace() -> None:
    """Neither the version nor a read-only flag changes."""
    tensor, array = torch.tensor([NAN]), np.array([np.nan])
    array.flags.writeable = False
    count_tensor(tensor)

    assert count_array(array) == Counts(1, 1, 0, 0, (0,), 0.0)
    assert (tensor._version, array.flags.writeable) == (0, False)


def test_a_number_is_counted() -> None:
    """A Python float is one value without an index."""
    assert count_number(-INF) == Counts(1, 0, 0, 1, (), 0.0)
