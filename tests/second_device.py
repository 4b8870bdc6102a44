"""A second device made of Python, `npy`: every operation runs on copies in the host's memory.

torch itself refuses to mix it with the CPU, in torch's own words. `python -m tests.second_device` reads a list of lists
of cells as JSON, and writes what the report says about the last cell of each. Registering a device cannot be undone,
so this runs in a process of its own.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_MEMORY: dict[int, torch.Tensor] = {}
"""The values of each storage of the device, by its address."""


def _empty(size: Any, dtype: torch.dtype | None) -> torch.Tensor:
    tensor = torch._C._acc.create_empty_tensor(tuple(size), dtype or torch.get_default_dtype())
    _MEMORY[tensor.untyped_storage()._cdata] = torch.zeros(max(tensor.numel(), 1), dtype=tensor.dtype)
    return tensor


def _is_here(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "npy"


def _on_host(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == "npy":
        return torch.device("cpu")
    if not _is_here(value):
        return value
    memory = _MEMORY[value.untyped_storage()._cdata]
    return torch.as_strided(memory, value.size(), value.stride(), value.storage_offset())


def _from_host(value: Any, given: dict[int, Any]) -> Any:
    if not isinstance(value, torch.Tensor) or id(value) in given:
        return given.get(id(value), value)
    tensor = _empty(value.shape, value.dtype)
    _on_host(tensor).copy_(value)
    return tensor


def _run_on_host(operation: Any, *args: Any, **kwargs: Any) -> Any:
    given = tree_leaves((args, kwargs))
    homes = {str(value.device) for value in given if isinstance(value, torch.Tensor) and value.dim()}
    if len(homes) > 1:  # the words of torch's own kernels
        found = ", ".join(sorted(homes, reverse=True)).replace(", ", " and ", 1)
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {found}!")
    here = tree_map(_on_host, (args, kwargs))
    known = {id(copy): value for copy, value in zip(tree_leaves(here), given, strict=True)}
    return tree_map(lambda value: _from_host(value, known), operation(*here[0], **here[1]))


def register() -> list[torch.library.Library]:
    """Give torch the device; it lives as long as what is returned."""
    _setup_privateuseone_for_python_backend("npy")
    every, own = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    every.fallback(_run_on_host, "PrivateUse1")

    def copy_from(source: Any, target: Any, non_blocking: bool = False) -> Any:
        _on_host(target).copy_(_on_host(source))
        return target

    def empty(size: Any, dtype: Any = None, *rest: Any, **options: Any) -> Any:
        return _empty(size, dtype)

    def empty_strided(size: Any, stride: Any, dtype: Any = None, *rest: Any, **options: Any) -> Any:
        return _empty(size, dtype)

    own.impl("empty.memory_format", empty, "PrivateUse1")
    own.impl("empty_strided", empty_strided, "PrivateUse1")
    own.impl("_copy_from", copy_from, "PrivateUse1")
    own.impl("_local_scalar_dense", lambda value: _on_host(value).item(), "PrivateUse1")
    return [every, own]


def main() -> None:
    """Look at the last cell of each list."""
    kept = register()
    from tests.looking import look_around

    answers = []
    for cells in json.load(sys.stdin):
        report, _, error = look_around(*cells)
        answers.append(
            {
                "error": str(error),
                "failures": report.failures,
                "findings": [f.to_dict() for f in report.findings],
            }
        )
    json.dump(answers, sys.stdout)
    del kept


if __name__ == "__main__":
    main()
