"""Which kind of PyTorch's objects a value is, and which of its methods mean something when called with no argument."""

from __future__ import annotations

import inspect
import sys
import types
from typing import Any, Literal

TorchKind = Literal["tensor", "module", "optimizer", "scheduler", "scaler", "distribution"]

_TENSOR_VALUES = frozenset(
    {
        "item", "tolist", "numpy", "detach", "clone", "cpu", "cuda", "float", "half", "double", "bfloat16", "long",
        "int", "short", "bool", "contiguous", "mean", "sum", "std", "var", "max", "min", "argmax", "argmin", "median",
        "prod", "norm", "abs", "exp", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "square", "sigmoid", "tanh",
        "relu", "sin", "cos", "neg", "sign", "round", "floor", "ceil", "reciprocal", "any", "all", "isnan", "isinf",
        "isfinite", "numel", "nelement", "dim", "ndimension", "size", "stride", "element_size", "squeeze", "flatten",
        "ravel", "t", "nonzero", "count_nonzero", "unique", "sort", "argsort", "trace", "conj", "is_contiguous",
        "is_floating_point", "is_complex", "inverse", "det", "cumsum", "diff", "nanmean", "nansum", "logical_not",
        "bitwise_not", "storage", "data_ptr",
    }
)  # fmt: skip
_MODULE_ITERATORS = frozenset(
    {
        "parameters", "named_parameters", "modules", "named_modules", "children", "named_children", "buffers",
        "named_buffers", "state_dict",
    }
)  # fmt: skip
_MODULE_MOVES = frozenset({"cuda", "cpu", "xpu", "half", "float", "double", "bfloat16"})

VALUES: dict[TorchKind, frozenset[str]] = {
    "tensor": _TENSOR_VALUES,
    "module": _MODULE_ITERATORS | _MODULE_MOVES,
    "optimizer": frozenset({"state_dict"}),
    "scheduler": frozenset({"state_dict", "get_last_lr"}),
    "scaler": frozenset({"state_dict", "get_scale"}),
    "distribution": frozenset({"sample", "rsample", "entropy"}),
}
"""Methods that are called for their result, none of which needs an argument."""

ACTIONS: dict[TorchKind, frozenset[str]] = {
    "tensor": frozenset({"backward", "retain_grad", "zero_", "detach_", "requires_grad_", "share_memory_"}),
    "module": _MODULE_MOVES | {"train", "eval", "zero_grad", "requires_grad_", "share_memory", "reset_parameters"},
    "optimizer": frozenset({"step", "zero_grad"}),
    "scheduler": frozenset({"step"}),
    "scaler": frozenset({"update"}),
    "distribution": frozenset(),
}
"""Methods that are called for what they do, none of which needs an argument."""

_NOT_TENSORS = frozenset(
    {
        "item", "tolist", "numel", "nelement", "dim", "ndimension", "element_size", "data_ptr", "numpy", "size",
        "stride", "backward", "storage", "untyped_storage", "get_device", "is_contiguous", "is_floating_point",
        "is_complex", "register_hook",
    }
)  # fmt: skip


def kind_of_value(value: Any) -> TorchKind | None:
    """Tell what a live value is to PyTorch, by its type alone."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        return None
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        return "tensor"
    if issubclass(kind, torch.nn.Module):
        return "module"
    if issubclass(kind, torch.optim.Optimizer):
        return "optimizer"
    return _other_kind(kind)


def kind_of_class(cls: type) -> TorchKind | None:
    """Tell what the instances of a class are to PyTorch."""
    torch = sys.modules["torch"]
    if issubclass(cls, torch.Tensor):
        return "tensor"
    if issubclass(cls, torch.nn.Module):
        return "module"
    return "optimizer" if issubclass(cls, torch.optim.Optimizer) else _other_kind(cls)


def _other_kind(kind: type) -> TorchKind | None:
    names = {f"{base.__module__}.{base.__qualname__}" for base in type.__getattribute__(kind, "__mro__")}
    if names & {"torch.optim.lr_scheduler.LRScheduler", "torch.optim.lr_scheduler._LRScheduler"}:
        return "scheduler"
    if "torch.amp.grad_scaler.GradScaler" in names:
        return "scaler"
    return "distribution" if "torch.distributions.distribution.Distribution" in names else None


def needs_no_argument(kind: TorchKind, name: str) -> bool:
    """Tell whether `value.name()` is a complete call."""
    return name in VALUES[kind] or name in ACTIONS[kind] or (kind == "tensor" and is_inplace(name))


def is_inplace(name: str) -> bool:
    """Tell whether a tensor's method writes in place and needs no argument: `relu_`, `zero_`."""
    return name.endswith("_") and not name.startswith("_") and name[:-1] in (_TENSOR_VALUES | {"zero", "detach"})


def returns_tensor(method: str) -> bool:
    """Tell whether a method of a tensor returns a tensor."""
    return method not in _NOT_TENSORS and hasattr(sys.modules["torch"].Tensor, method)


def is_from_torch(value: Any) -> bool:
    """Tell whether a function or class was made by PyTorch."""
    module = _module_of(value)
    return module == "torch" or module.startswith("torch.")


def is_from(value: Any, *packages: str) -> bool:
    """Tell whether a function or class was made by one of these packages."""
    return _module_of(value).partition(".")[0] in packages


def _module_of(value: Any) -> str:
    kind = type(value)
    if kind in (types.FunctionType, types.BuiltinFunctionType) or issubclass(kind, type):
        module = type.__getattribute__(value, "__module__") if issubclass(kind, type) else value.__module__
        if type(module) is str:
            return module
        owner = getattr(value, "__self__", None)  # torch.add and its like belong to a class in torch._C
        return type(owner).__module__ if owner is not None and type(owner) is not types.ModuleType else "torch"
    return kind.__module__ if kind.__name__ in ("ufunc", "_ArrayFunctionDispatcher") else ""


def name_of(function: Any) -> str:
    """Return the name of a live function, method or class; nothing of any other object, which may compute its name."""
    kind = type(function)
    if issubclass(kind, type):
        return str(type.__getattribute__(function, "__name__"))
    return str(function.__name__) if kind in _NAMED else ""


_NAMED = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodDescriptorType)


def is_complete_call(function: Any) -> bool:
    """Tell whether a function or class of PyTorch can be called without arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return all(p.default is not p.empty or p.kind in variadic for p in parameters)
