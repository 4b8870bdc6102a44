"""What an object holds, by its type, read without calling anything of the user's.

Only the containers of the standard library, modules, optimizers, plain objects and a few known holders are opened.
Iterators, generators, properties, default factories and unknown containers stay closed. Types are judged by
`type(obj)`: `isinstance` reads `__class__`, which an object may compute.
"""

from __future__ import annotations

import collections
import functools
import math
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torchmagic.namespace.places import Role, attribute_step, key_step

Child = tuple[Any, str, Role, Any]
"""The object, the step that reaches it, the role and the bare key."""

Opener = Callable[[Any], Iterator[Child]]

ATOMS = frozenset(
    {int, float, bool, str, bytes, bytearray, complex, type(None), range, slice, type(Ellipsis), type(NotImplemented)}
)
"""Types that hold nothing."""

_CLOSED_PACKAGES = frozenset(
    {
        "IPython", "ipykernel", "traitlets", "matplotlib", "zmq", "tornado", "jupyter_client", "threading", "_thread",
        "logging", "asyncio", "concurrent", "multiprocessing", "subprocess", "socket", "sqlite3", "ast", "re",
        "torchmagic",
    }
)  # fmt: skip
_CLOSED_MODULES = ("torch._", "torch.fx", "torch.utils.data.dataloader", "torch.autograd", "torch.jit")
_OPEN_ANYWAY = frozenset({"torch.utils.data.dataloader.DataLoader", "torch._utils"})

LONG = 50_000
"""A list longer than this is sampled; when the sample holds only numbers and strings it is not read."""

_SAMPLE = 200
_MOST_OBJECT_ELEMENTS = 10_000


def _worth_visiting(items: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """Leave out, at the cost of a glance, the elements that hold nothing and are no bad number."""
    for key, value in items:
        if type(value) not in ATOMS or (type(value) is float and not math.isfinite(value)):
            yield key, value


def _dict_children(obj: Any) -> Iterator[Child]:
    for key, value in _worth_visiting(list(dict.items(obj))):
        yield value, key_step(key), "item", key


def _list_children(obj: Any) -> Iterator[Child]:
    for index, value in _worth_visiting(enumerate(list.__iter__(obj))):
        yield value, f"[{index}]", "item", index


def _tuple_children(obj: Any) -> Iterator[Child]:
    fields = class_attribute(type(obj), "_fields")
    named = type(fields) is tuple and len(fields) == tuple.__len__(obj)
    for index, value in _worth_visiting(enumerate(tuple.__iter__(obj))):
        step = f".{fields[index]}" if named else f"[{index}]"
        yield value, step, "attribute" if named else "item", fields[index] if named else index


def _deque_children(obj: Any) -> Iterator[Child]:
    for index, value in _worth_visiting(enumerate(list(collections.deque.__iter__(obj)))):
        yield value, f"[{index}]", "item", index


def _set_children(obj: Any) -> Iterator[Child]:
    kind = set if issubclass(type(obj), set) else frozenset
    for _, value in _worth_visiting(enumerate(list(kind.__iter__(obj)))):
        yield value, "{...}", "item", None


def _partial_children(obj: Any) -> Iterator[Child]:
    yield obj.func, ".func", "attribute", "func"
    yield obj.args, ".args", "attribute", "args"
    yield obj.keywords, ".keywords", "attribute", "keywords"


def _closure_children(obj: Any) -> Iterator[Child]:
    for index, (name, cell) in enumerate(zip(obj.__code__.co_freevars, obj.__closure__ or (), strict=False)):
        try:
            value = cell.cell_contents
        except ValueError:
            continue  # a name that is not bound yet
        yield value, f".__closure__[{index}].cell_contents", "closure", name


def _method_children(obj: Any) -> Iterator[Child]:
    yield obj.__self__, ".__self__", "self", "__self__"


def _class_children(obj: Any) -> Iterator[Child]:
    for name, value in list(type.__getattribute__(obj, "__dict__").items()):
        if not name.startswith("__") and type(value) not in (types.FunctionType, staticmethod, classmethod, property):
            yield value, attribute_step(name), "attribute", name


def _object_children(obj: Any) -> Iterator[Child]:
    for name, value in object_state(obj):
        yield value, attribute_step(name), "attribute", name


def _module_children(obj: Any) -> Iterator[Child]:
    state = object.__getattribute__(obj, "__dict__")
    roles: tuple[tuple[str, Role], ...] = (
        ("_parameters", "parameter"),
        ("_buffers", "buffer"),
        ("_modules", "submodule"),
    )
    for table, role in roles:
        held = state.get(table)
        if held is not None and issubclass(type(held), dict):
            for name, value in list(dict.items(held)):
                if value is not None:
                    yield value, _module_step(obj, name), role, name
    for name, value in list(state.items()):
        if name not in module_internals():
            yield value, _module_step(obj, name), "attribute", name


def _module_step(module: Any, name: str) -> str:
    nn = sys.modules["torch"].nn
    if name.isdigit():
        listed = (nn.Sequential, nn.ModuleList, nn.ParameterList)
        return f"[{name}]" if issubclass(type(module), listed) else f".get_submodule({name!r})"
    if issubclass(type(module), (nn.ModuleDict, nn.ParameterDict)):
        return f"[{name!r}]"
    return attribute_step(name)


@functools.lru_cache(maxsize=1)
def module_internals() -> frozenset[str]:
    """Return the attribute names that every `torch.nn.Module` keeps for itself."""
    return frozenset(vars(sys.modules["torch"].nn.Module())) | {"_is_full_backward_hook", "_compiled_call_impl"}


def _optimizer_children(obj: Any) -> Iterator[Child]:
    attributes = object.__getattribute__(obj, "__dict__")
    order: dict[int, int] = {}
    groups = attributes.get("param_groups")
    for number, group in enumerate(groups if type(groups) is list else ()):
        params = group.get("params") if type(group) is dict else None
        for index, parameter in enumerate(params if type(params) is list else ()):
            order.setdefault(id(parameter), len(order))
            yield parameter, f".param_groups[{number}]['params'][{index}]", "group", index
    state = attributes.get("state")
    for parameter, values in list(dict.items(state)) if issubclass(type(state), dict) else ():
        if not issubclass(type(values), dict):
            continue
        place = order.get(id(parameter), "<parameter of no group>")
        for name, value in list(dict.items(values)):
            yield value, f".state[{place}][{name!r}]", "state", name
    for name, value in list(attributes.items()):
        if not name.startswith("_") and name not in ("param_groups", "state", "defaults"):
            yield value, attribute_step(name), "attribute", name


def _array_children(obj: Any) -> Iterator[Child]:
    """Open an array of objects; arrays of numbers hold no objects."""
    numpy = sys.modules["numpy"]
    if numpy.ndarray.dtype.__get__(obj).hasobject and numpy.ndarray.size.__get__(obj) <= _MOST_OBJECT_ELEMENTS:
        plain = numpy.ndarray.view(obj, numpy.ndarray)
        for index in numpy.ndindex(plain.shape):
            text = ", ".join(map(str, index))
            yield plain[index], f"[{text}]" if text else "[()]", "item", index


def _frame_children(obj: Any) -> Iterator[Child]:
    """Open a pandas table by columns of floats; `iloc` shares their memory and fills no cache."""
    for index, name in enumerate(list(obj.columns)):
        column = obj.iloc[:, index]
        if getattr(column.dtype, "kind", "") == "f" and type(column.dtype).__module__.startswith("numpy"):
            yield column.to_numpy(copy=False), key_step(name), "column", name


def _series_children(obj: Any) -> Iterator[Child]:
    if getattr(obj.dtype, "kind", "") == "f" and type(obj.dtype).__module__.startswith("numpy"):
        yield obj.to_numpy(copy=False), ".values", "column", "values"


def elements_of(obj: Any) -> Iterator[Any]:
    """Yield the elements of a builtin container or a subclass of one, by the builtin's own methods; else nothing."""
    for base in (list, tuple, set, frozenset, collections.deque):
        if issubclass(type(obj), base):
            yield from list(base.__iter__(obj))
            return
    if issubclass(type(obj), dict):
        yield from list(dict.values(obj))


def object_state(obj: Any) -> Iterator[tuple[str, Any]]:
    """Yield attribute names and values from `__dict__` and `__slots__`, reading no property."""
    for holder in type.__getattribute__(type(obj), "__mro__"):
        own = type.__getattribute__(holder, "__dict__")
        if type(own.get("__dict__")) in (types.GetSetDescriptorType, types.MemberDescriptorType):
            attributes = own["__dict__"].__get__(obj)
            if type(attributes) is dict:
                yield from [(name, value) for name, value in attributes.items() if type(name) is str]
            break
    for holder in type.__getattribute__(type(obj), "__mro__"):
        for name, member in type.__getattribute__(holder, "__dict__").items():
            if type(member) is types.MemberDescriptorType and name != "__dict__":
                try:
                    yield name, member.__get__(obj)
                except AttributeError:
                    continue  # a slot that was never set


def class_attribute(kind: type, name: str, default: Any = None) -> Any:
    """Return what a class or its bases hold under a name, running no descriptor and no metaclass."""
    for holder in type.__getattribute__(kind, "__mro__"):
        own = type.__getattribute__(holder, "__dict__")
        if name in own:
            return own[name]
    return default


def _is_closed(kind: type) -> bool:
    module = type.__getattribute__(kind, "__dict__").get("__module__", "")
    if type(module) is not str:
        return True
    if f"{module}.{kind.__name__}" in _OPEN_ANYWAY:
        return False
    return module.partition(".")[0] in _CLOSED_PACKAGES or module.startswith(_CLOSED_MODULES)


def long_numbers(obj: Any) -> bool:
    """Tell whether a list is long and a sample of it holds only numbers and strings."""
    length = list.__len__(obj)
    if length <= LONG:
        return False
    stride = max(1, length // _SAMPLE)
    return all(type(list.__getitem__(obj, index)) in ATOMS for index in range(0, length, stride))


def opener_for(kind: type, user_globals: Any) -> Opener | None:
    """Return the function that opens objects of this type, or None when the type stays closed."""
    if kind in ATOMS or kind in (types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.FrameType):
        return _method_children if kind is types.BuiltinFunctionType else None
    if kind is types.FunctionType:
        return lambda obj: _closure_children(obj) if _is_users(obj, user_globals) else iter(())
    if kind is types.MethodType:
        return _method_children
    for base, opener in _library_openers():
        if issubclass(kind, base):
            return opener
    for base, opener in _BUILTIN_OPENERS:
        if issubclass(kind, base):
            return opener
    if issubclass(kind, type):
        return lambda obj: _class_children(obj) if _is_main_class(obj) else iter(())
    return None if _is_closed(kind) else _object_children


def _is_users(function: Any, user_globals: Any) -> bool:
    return function.__globals__ is user_globals or function.__module__ == "__main__"


def _is_main_class(obj: Any) -> bool:
    return bool(type.__getattribute__(obj, "__dict__").get("__module__") == "__main__")


def _library_openers() -> Iterator[tuple[type | tuple[type, ...], Opener]]:
    """Yield the openers for libraries that are already loaded; none is imported for the look."""
    torch, numpy, pandas = (sys.modules.get(name) for name in ("torch", "numpy", "pandas"))
    if torch is not None and hasattr(torch, "nn"):
        yield torch.nn.Module, _module_children
        yield torch.optim.Optimizer, _optimizer_children
    if numpy is not None and hasattr(numpy, "ndarray"):
        yield numpy.ndarray, _array_children
    if pandas is not None and hasattr(pandas, "DataFrame"):
        yield pandas.DataFrame, _frame_children
        yield pandas.Series, _series_children


def _plain_object_too(opener: Opener) -> Opener:
    """Open a subclass of a builtin container: its items, then the attributes the subclass adds."""

    def open_both(obj: Any) -> Iterator[Child]:
        yield from opener(obj)
        if type(obj).__flags__ & _HEAP_TYPE:
            yield from _object_children(obj)

    return open_both


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class made in Python, which may carry attributes

_BUILTIN_OPENERS: tuple[tuple[type, Opener], ...] = (
    (dict, _plain_object_too(_dict_children)),
    (list, _plain_object_too(_list_children)),
    (tuple, _tuple_children),
    (collections.deque, _plain_object_too(_deque_children)),
    (set, _set_children),
    (frozenset, _set_children),
    (functools.partial, _partial_children),
)
