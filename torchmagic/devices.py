"""Which device is which: where a tensor or a module is, which device is the host, and what torch says of a mismatch."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

HOST = "cpu"

_MISMATCH = re.compile(
    r"same device"  # torch's own check, recurrent layers, cat, foreach, indices, scaled_dot_product_attention
    r"|is not on the expected device"  # fake and meta kernels
    r"|device propagation"
    r"|Input type \([\w.]+(Tensor|Type)\) and (weight|bias) type"  # convolutions; dtypes are `double` there
    r"|expected device .+ but got device"
    r"|on the expected device|not at the same device"
    r"|[Ee]xpected .* on device|[Ee]xpected object of device type"
    r"|parameters and buffers on device"  # DataParallel
    r"|cross-device copies are not allowed"
    r"|expected (it|them) to be on GPU|[Ee]xpected object of backend"  # torch before 1.9
    r"|Placeholder storage has not been allocated on MPS device|Passed CPU tensor to MPS op"
    r"|is not an XLA tensor"
    r"|indices should be either on"
    r"|assign a gradient with device type"
    r"|variable\.set_data\(tensor\)"
)
_INDEX = re.compile(r"indices should be either on")
_NAMED = re.compile(r"\b(?:device|devices,|and|on) ((?:cuda|mps|xpu|meta|hpu|npu|xla|mtia|privateuseone)(?::\d+)?)\b")
_TO_NUMPY = re.compile(r"can't convert (\S+) device type tensor to numpy")


def is_mismatch(error: BaseException | None) -> bool:
    """Tell whether an error is torch's complaint about operands on different devices."""
    return error is not None and not is_numpy_refusal(error) and _MISMATCH.search(str(error)) is not None


def is_numpy_refusal(error: BaseException | None) -> bool:
    """Tell whether numpy was asked to read memory that is not the host's."""
    return type(error) is TypeError and _TO_NUMPY.search(str(error)) is not None


def is_index_refusal(error: BaseException | None) -> bool:
    """Tell whether an index is on an accelerator and what it selects from is not."""
    return error is not None and _INDEX.search(str(error)) is not None


def accelerator_named_by(error: BaseException | None) -> str | None:
    """Return the device beside the host that torch's complaint names."""
    found = _NAMED.search(str(error)) if error is not None else None
    return found.group(1) if found is not None else None


def device_of(tensor: Any) -> str | None:
    """Return where a tensor is, such as `cuda:0`; fake tensors answer with the device they pretend to be on."""
    try:
        return str(tensor.device)
    except (RuntimeError, AttributeError, NotImplementedError):
        return None


def is_scalar(tensor: Any) -> bool:
    """Tell whether a tensor has no dimensions: such a tensor on the host may be mixed with every device."""
    try:
        return bool(tensor.dim() == 0)
    except (RuntimeError, AttributeError, NotImplementedError):
        return False


def own_tensors(module: Any) -> Iterator[Any]:
    """Yield the parameters and buffers that a module registers itself, read from its tables alone."""
    state = object.__getattribute__(module, "__dict__")
    for table in ("_parameters", "_buffers"):
        held = state.get(table)
        if issubclass(type(held), dict):
            yield from (value for value in dict.values(held) if value is not None)


def submodules(module: Any) -> Iterator[Any]:
    """Yield a module and everything registered below it, each once."""
    waiting, known = [module], {id(module)}
    while waiting:
        current = waiting.pop()
        yield current
        held = object.__getattribute__(current, "__dict__").get("_modules")
        for child in dict.values(held) if issubclass(type(held), dict) else ():
            if child is not None and id(child) not in known:
                known.add(id(child))
                waiting.append(child)


def all_tensors(module: Any) -> list[Any]:
    """Return the parameters and buffers of a module and of everything below it."""
    return [tensor for part in submodules(module) for tensor in own_tensors(part)]


def devices_of_module(module: Any) -> set[str]:
    """Return the devices of a module's parameters and buffers; a counter of no dimensions does not count."""
    found = {device_of(t) for t in all_tensors(module) if not is_scalar(t)}
    return {device for device in found if device is not None}


def home_of(module: Any) -> str | None:
    """Return the device a module lives on; None when it has no tensors or lives on several."""
    devices = devices_of_module(module)
    return next(iter(devices)) if len(devices) == 1 else None


def is_built_for(method: str) -> bool:
    """Tell whether this build of torch can run `x.cuda()`; asking so starts no driver."""
    return method != "cuda" or bool(sys.modules["torch"].backends.cuda.is_built())


def spelled(device: str) -> str:
    """Spell a device as a Python literal; the first accelerator is usually written without its number."""
    return f'"{device.removesuffix(":0")}"'


def same(one: str, two: str) -> bool:
    """Tell whether two names mean one device: `cuda` is the current one, so that it equals each `cuda:n`."""
    return one == two or (one.partition(":")[0] == two.partition(":")[0] and ":" not in one + two.replace(":0", ""))


def is_split_on_purpose(module: Any) -> bool:
    """Tell whether a library distributed a module over devices and moves the data itself."""
    torch = sys.modules["torch"]
    for part in submodules(module):
        state = object.__getattribute__(part, "__dict__")
        if any(name in state for name in ("hf_device_map", "_hf_hook")) or issubclass(
            type(part), torch.nn.DataParallel
        ):
            return True
    return False
