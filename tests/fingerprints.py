"""Everything that a look could disturb, in a form to compare before and after."""

from __future__ import annotations

import ctypes
import gc
import random
import sys
import warnings
from typing import Any

import numpy as np
import torch


def global_state() -> tuple[Any, ...]:
    """Return random states, warning filters, default dtype and device, modes, threads and the collector's state."""
    return (
        torch.get_rng_state().numpy().tobytes(),
        np.random.get_state()[1].tobytes(),
        np.random.get_state()[2:],
        random.getstate(),
        list(warnings.filters),
        np.geterr(),
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_anomaly_enabled(),
        torch.get_num_threads(),
        torch.cuda.is_initialized(),
        sys.getrecursionlimit(),
        gc.isenabled(),
    )


def fingerprint(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return a tensor's identity, its counter, its place in the graph, and the bits of its values and its gradient."""
    with torch._C.DisableTorchFunction():
        gradient = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
        return (
            id(tensor),
            type(tensor),
            None if tensor.is_inference() else tensor._version,
            (tensor.dtype, tensor.layout, tensor.device),
            (tensor.requires_grad, tensor.is_leaf, tensor.retains_grad, tensor.grad_fn is None),
            tensor._backward_hooks,
            _bits(tensor),
            id(gradient),
            _bits(gradient) if gradient is not None else None,
        )


def _bits(tensor: torch.Tensor) -> Any:
    if tensor.layout is torch.sparse_coo:
        return _bits(tensor._indices()), _bits(tensor._values())
    if tensor.layout is torch.sparse_csr:
        return _bits(tensor.crow_indices()), _bits(tensor.col_indices()), _bits(tensor.values())
    storage = tensor.untyped_storage()
    return ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.data_ptr() else b""


def shape_of_container(obj: Any) -> Any:
    """Return what a container holds, by identity and in order; None for what is no container."""
    kind = type(obj)
    if issubclass(kind, dict):
        return [(id(key), id(value)) for key, value in dict.items(obj)]
    for base in (list, tuple):
        if issubclass(kind, base):
            return [id(part) for part in base.__iter__(obj)]
    if issubclass(kind, (torch.nn.Module, torch.optim.Optimizer)):
        state = object.__getattribute__(obj, "__dict__")
        return [(name, id(value), shape_of_container(value)) for name, value in state.items()]
    return None
