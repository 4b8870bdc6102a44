"""What a statement writes: bindings, augmented assignments, stores into containers, writes in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from torchmagic.source.refs import ANY, Ref, ref_of
from torchmagic.source.scopes import FunctionDef, Step

WriteKind = Literal["bind", "augment", "store", "inplace", "clear"]

_STORES = {"append": 0, "appendleft": 0, "add": 0, "push": 0, "put": 0, "extend": 0, "insert": 1, "update": 0}
_REGISTRATIONS = frozenset({"register_buffer", "register_parameter"})
_CLEARS = frozenset({"clear", "popitem", "reset", "zero_"})
_FILLS_ARGUMENT = {"readinto": 0, "readinto1": 0, "recv_into": 0, "recvfrom_into": 0, "pack_into": 1}
"""Methods of files, sockets and `struct` that fill bytes they are given, by the place of the bytes."""
_ARRAY_INPLACE = frozenset({"sort", "fill", "itemset", "partition", "resize", "byteswap", "put"})


@dataclass(frozen=True, eq=False)
class Write:
    """One write.

    `position` is set for one element of an unpacked value, `key` is the key of an item store, and `how` is the method
    or operator that writes.
    """

    kind: WriteKind
    target: Ref
    value: ast.expr | None
    step: Step
    node: ast.AST
    how: str = "="
    key: ast.expr | None = None
    position: int | None = None

    @property
    def line(self) -> int:
        """The line of the write in its unit."""
        return int(getattr(self.node, "lineno", self.step.line))


def writes_of(step: Step) -> Iterator[Write]:
    """Yield everything a statement writes, in order."""
    node = step.node
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _assign(target, node.value, step, None)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield from _assign(node.target, node.value, step, None)
    elif isinstance(node, ast.AugAssign):
        if (ref := ref_of(node.target)) is not None:
            yield Write("augment", ref, node.value, step, node, type(node.op).__name__)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield from _assign(node.target, node.iter, step, None, how="for")
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if item.optional_vars is not None:
                yield from _assign(item.optional_vars, item.context_expr, step, None, how="with")
    elif isinstance(node, ast.Delete):
        for target in node.targets:
            if (ref := ref_of(target)) is not None and not _is_part(target):
                yield Write("clear", _container(ref), None, step, node, "del")
    elif isinstance(node, (*FunctionDef, ast.ClassDef)):
        return
    for expression in step.own_expressions():
        yield from _expression_writes(expression, step)


def _is_part(target: ast.expr) -> bool:
    """Tell whether `del` takes only some of a container's entries: `del xs[3:]`."""
    part = target.slice if isinstance(target, ast.Subscript) else None
    return isinstance(part, ast.Slice) and (part.lower is not None or part.upper is not None)


def _container(ref: Ref) -> Ref:
    """Return the container of `del xs[:]`, else the path itself."""
    return Ref(ref.root, ref.steps[:-1]) if ref.steps and ref.steps[-1][0] == "item" else ref


def _assign(target: ast.expr, value: ast.expr, step: Step, position: int | None, how: str = "=") -> Iterator[Write]:
    if isinstance(target, (ast.Tuple, ast.List)):
        parallel = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        for index, element in enumerate(target.elts):
            inner = value.elts[index] if parallel else value  # type: ignore[attr-defined]
            yield from _assign(element, inner, step, None if parallel else index, how)
        return
    if isinstance(target, ast.Starred):
        target = target.value
    ref = ref_of(target)
    if ref is None:
        return
    if isinstance(target, ast.Subscript):
        container = Ref(ref.root, ref.steps[:-1])
        yield Write("store", container, value, step, step.node, "[]=", target.slice, position)
    else:
        yield Write("bind", ref, value, step, step.node, how, None, position)


def _expression_writes(expression: ast.expr, step: Step) -> Iterator[Write]:
    for node in ast.walk(expression):
        if isinstance(node, ast.NamedExpr):
            yield Write("bind", Ref(node.target.id), node.value, step, node, ":=")
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg == "out" and (ref := ref_of(keyword.value)) is not None:
                yield Write("inplace", ref, None, step, node, "out=")
        function = node.func
        if isinstance(function, ast.Attribute):
            yield from _method_writes(node, function, step)
        elif isinstance(function, ast.Name) and function.id == "setattr" and len(node.args) == 3:
            yield from _attribute_write(node, step)


def _attribute_write(call: ast.Call, step: Step) -> Iterator[Write]:
    """Read `setattr(run, "weights", value)` as `run.weights = value`."""
    obj, name, value = call.args
    receiver = ref_of(obj)
    if receiver is not None and isinstance(name, ast.Constant):
        yield Write("bind", Ref(receiver.root, (*receiver.steps, ("attr", name.value))), value, step, call)


def _method_writes(call: ast.Call, function: ast.Attribute, step: Step) -> Iterator[Write]:
    name = function.attr
    receiver = container_ref(function.value)
    if receiver is not None:
        if name in _STORES and len(call.args) > _STORES[name]:
            yield Write("store", receiver, call.args[_STORES[name]], step, call, name)
        elif name == "setdefault" and len(call.args) == 2:
            yield Write("store", receiver, call.args[1], step, call, name, call.args[0])
        elif name == "update" and not call.args:
            for keyword in call.keywords:
                key = ast.Constant(keyword.arg) if keyword.arg is not None else None
                yield Write("store", receiver, keyword.value, step, call, name, key)
        elif name == "__setitem__" and len(call.args) == 2:
            yield Write("store", receiver, call.args[1], step, call, "[]=", call.args[0])
        elif name in _REGISTRATIONS and len(call.args) > 1 and isinstance(call.args[0], ast.Constant):
            yield Write(
                "bind", Ref(receiver.root, (*receiver.steps, ("attr", call.args[0].value))), call.args[1], step, call
            )
        elif name in _CLEARS and not call.args:
            yield Write("clear" if name != "zero_" else "inplace", receiver, None, step, call, name)
        elif is_inplace_name(name) or name in _ARRAY_INPLACE:
            yield Write("inplace", receiver, call.args[0] if call.args else None, step, call, name)
    place = _FILLS_ARGUMENT.get(name)
    if place is not None and len(call.args) > place and (filled := ref_of(call.args[place])) is not None:
        yield Write("inplace", filled, None, step, call, name)
    if call.args and (first := ref_of(call.args[0])) is not None:
        module = ref_of(function.value)
        if name in ("copyto", "put", "place", "putmask", "fill_diagonal") and module == Ref("np"):
            yield Write("inplace", first, None, step, call, f"np.{name}")
        elif is_inplace_name(name) and module is not None and module.last_name == "init":
            yield Write("inplace", first, None, step, call, name)


def is_inplace_name(name: str) -> bool:
    """Tell whether a method name follows torch's convention for writing in place."""
    return name.endswith("_") and not name.endswith("__") and not name.startswith("_") and name != "requires_grad_"


def container_ref(node: ast.expr) -> Ref | None:
    """Return the path of a receiver, through `setdefault` and `get` calls: `d.setdefault(k, []).append`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("setdefault", "get"):
        inner = ref_of(node.func.value)
        key = node.args[0] if node.args else None
        return None if inner is None else inner.item(key.value if isinstance(key, ast.Constant) else ANY)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_inplace_name(node.func.attr):
        return container_ref(node.func.value)  # x.sub_(m).div_(s) writes x twice
    return ref_of(node)
