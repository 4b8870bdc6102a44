"""Follow an expression back to the paths that name the same memory, through views, conversions, aliases and calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.source.calls import argument_node, argument_ref
from torchmagic.source.program import CLOSURE, Program
from torchmagic.source.refs import ANY, Ref, bare_name, ref_of
from torchmagic.source.scopes import Scope, Step
from torchmagic.source.writes import Write, is_inplace_name

ALL = "all"
"""A step `("all", "parameters")` stands for every parameter or buffer of the module before it."""

_DEEPEST = 6
_MOST = 24
SAME_MEMORY = frozenset({"data", "T", "mT", "H", "real"})
"""Attributes of a tensor that lie in its memory; on another object `data` is an attribute like any other."""

VIEWS = frozenset(
    {
        "detach", "view", "view_as", "numpy", "squeeze", "unsqueeze", "t", "transpose", "permute", "flatten", "ravel",
        "expand", "expand_as", "narrow", "select", "diagonal", "movedim", "swapaxes", "swapdims", "unfold", "unflatten",
        "broadcast_to", "as_strided", "requires_grad_", "share_memory_",
    }
)  # fmt: skip
"""Methods, and functions of torch, whose result lies in the memory of what they are given."""

CONVERSIONS = frozenset(
    {"from_numpy", "as_tensor", "asarray", "asanyarray", "from_dlpack", "frombuffer", "Tensor", "FloatTensor"}
)
"""Functions whose result lies in the memory of another library's object."""

_LIBRARIES = frozenset({"torch", "np", "numpy"})
_COLLECTIONS = {"parameters": 0, "named_parameters": 1, "buffers": 0, "named_buffers": 1}


def memory_ref(node: ast.AST | None) -> Ref | None:
    """Return the path whose memory an expression lies in, or None when it makes memory of its own."""
    steps: list[tuple[str, object]] = []
    while node is not None:
        if isinstance(node, ast.Attribute):
            steps.append(("attr", node.attr))
            node = node.value
        elif isinstance(node, ast.Subscript):
            plain = ref_of(ast.Subscript(ast.Name("_"), node.slice))
            if _picks_by_list(node.slice):
                return None
            steps.append(plain.steps[0] if plain is not None else ("item", ANY))
            node = node.value
        elif isinstance(node, ast.Call):
            node = _shared_argument(node)
        elif isinstance(node, (ast.Starred, ast.NamedExpr)):
            node = node.value
        else:
            break
    return Ref(node.id, tuple(reversed(steps))) if isinstance(node, ast.Name) else None


def shallow_source(value: ast.expr | None) -> Ref | None:
    """Return the path of what a value is a shallow copy of: another holder of the same parts."""
    if isinstance(value, ast.Dict):
        spread = [entry for key, entry in zip(value.keys, value.values, strict=True) if key is None]
        return ref_of(spread[0]) if spread else None
    if isinstance(value, ast.Subscript):
        part = value.slice
        whole = isinstance(part, ast.Slice) and part.lower is None and part.upper is None and part.step is None
        return ref_of(value.value) if whole else None
    if not isinstance(value, ast.Call):
        return None
    function, name = value.func, bare_name(value.func)
    if name in ("replace", "copy", "dict") and value.args:
        return ref_of(value.args[0])
    method = isinstance(function, ast.Attribute) and name in ("copy", "_replace") and not value.args
    return ref_of(function.value) if method and isinstance(function, ast.Attribute) else None


def _picks_by_list(index: ast.expr) -> bool:
    """Tell whether an index copies: a list of rows, or a comparison."""
    return isinstance(index, (ast.List, ast.ListComp, ast.Compare))


def _shared_argument(call: ast.Call) -> ast.expr | None:
    function = call.func
    if (filled := next((k.value for k in call.keywords if k.arg == "out"), None)) is not None:
        return filled
    if isinstance(function, ast.Name):
        return call.args[0] if function.id in CONVERSIONS and call.args else None
    if not isinstance(function, ast.Attribute):
        return None
    name, receiver = function.attr, function.value
    if isinstance(receiver, ast.Name) and receiver.id in _LIBRARIES:
        casts = any(k.arg == "dtype" for k in call.keywords) and name != "frombuffer"
        shares = name in VIEWS or (name in CONVERSIONS and not casts)
        return call.args[0] if shares and call.args else None
    return receiver if name in VIEWS or is_inplace_name(name) else None


def memory_paths(program: Program, ref: Ref, step: Step, depth: int = _DEEPEST) -> list[Ref]:
    """Return the paths by which the top level of the cell knows the memory that `ref` names in a statement."""
    if not depth:
        return []
    behind = [
        path for hidden in _behind_properties(program, ref) for path in memory_paths(program, hidden, step, depth - 1)
    ]
    return list(dict.fromkeys([*_paths(program, ref, step, depth), *behind]))[:_MOST]


def _behind_properties(program: Program, ref: Ref) -> Iterator[Ref]:
    """Yield the paths of what the properties on a path return."""
    for index, (kind, key) in enumerate(ref.steps):
        if kind == "attr" and key in program.property_sources:
            for steps in program.property_sources[key]:
                yield Ref(ref.root, (*ref.steps[:index], *steps, *ref.steps[index + 1 :]))


def _paths(program: Program, ref: Ref, step: Step, depth: int) -> list[Ref]:
    owner = step.scope.owner_of(ref.root)
    at_top = isinstance(owner.node, ast.Module)
    found: list[Ref] = []
    if (source := comprehension_source(ref.root, step)) is not None:
        return memory_paths(program, source + ref.steps, step, depth - 1)
    if at_top:
        found.append(ref)
    elif step.scope is not owner:
        found.append(Ref(CLOSURE, (("attr", ref.root), *ref.steps)))
    bound = last_bind(program, ref.root, owner, step)
    if bound is not None:
        for source, at in sources(program, bound):
            if source.root != ref.root or at is not step:
                found += memory_paths(program, source + ref.steps, at, depth - 1)
        if ref.steps and bound.how in ("=", ":=") and (copied := shallow_source(bound.value)) is not None:
            found += memory_paths(program, copied + ref.steps, bound.step, depth - 1)
        if not at_top:
            found += [target + path + ref.steps for target, path in _returned_as(program, ref.root, owner)]
    elif not at_top:
        found += program.spellings(ref, step.scope)
        if ref.root in owner.parameters:
            for call in program.callers(owner):
                argument = argument_ref(call, owner, ref.root) or memory_ref(argument_node(call, owner, ref.root))
                if argument is not None:
                    found += memory_paths(program, argument + ref.steps, call.step, depth - 1)
            found += [target + path + ref.steps for target, path in _returned_as(program, ref.root, owner)]
    return found


def last_bind(program: Program, name: str, owner: Scope, step: Step) -> Write | None:
    """Return the binding of a name that is in force at a statement: the last above it, else the last of its loop."""
    binds = program.binds_of(name, owner)
    if step.scope is not owner:
        return binds[-1] if len(binds) == 1 else None
    above = [write for write in binds if write.step.order < step.order or (write.how == "for" and write.step is step)]
    if above:
        return above[-1]
    return binds[-1] if binds and step.loops and name not in owner.parameters else None


def sources(program: Program, bound: Write) -> Iterator[tuple[Ref, Step]]:
    """Yield the paths whose memory a binding takes over, each with the statement in which it is written."""
    if bound.how == "for":
        source = _element_of(bound.value, bound.position)
        if source is not None:
            yield source, bound.step
        return
    if bound.how not in ("=", ":="):
        return
    position = () if bound.position is None else (("item", bound.position),)
    source = memory_ref(bound.value)
    if source is not None:
        yield source + position, bound.step
    elif isinstance(bound.value, ast.Call):
        for returned, at in returns_of(program, bound.value):
            if (inner := memory_ref(returned)) is not None:
                yield inner + position, at


def returns_of(program: Program, call: ast.Call) -> Iterator[tuple[ast.expr, Step]]:
    """Yield what the program's own function that a call names returns."""
    function = call.func
    name = bare_name(function)
    for scope in program.scopes:
        if scope.name == name and name and (scope.class_name is not None) == isinstance(function, ast.Attribute):
            for step in program.steps:
                if step.scope is scope and isinstance(step.node, ast.Return) and step.node.value is not None:
                    yield step.node.value, step


def _returned_as(program: Program, name: str, owner: Scope) -> Iterator[tuple[Ref, tuple[tuple[str, object], ...]]]:
    for target, path, _ in program.returned_as(name, owner):
        yield target, path


def _element_of(values: ast.expr | None, position: int | None) -> Ref | None:
    """Return the path of what a loop variable takes from the values looped over."""
    if isinstance(values, ast.Call):
        function = values.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name == "zip" and position is not None and position < len(values.args):
            return _element_of(values.args[position], None)
        if name == "enumerate" and position == 1 and values.args:
            return _element_of(values.args[0], None)
        if name in ("reversed", "list", "iter", "tqdm", "sorted") and values.args:
            return _element_of(values.args[0], position)
        if isinstance(function, ast.Attribute):
            return _element_of_method(function, position)
    source = memory_ref(values)
    if source is None:
        return None
    return source + ((("item", ANY),) if position is None else (("item", ANY), ("item", position)))


def _element_of_method(function: ast.Attribute, position: int | None) -> Ref | None:
    holder = memory_ref(function.value)
    name = function.attr
    if holder is not None and name in _COLLECTIONS and (position or 0) == _COLLECTIONS[name]:
        return _every_parameter(holder)
    if (name, position) in (("items", 1), ("values", None)):
        if isinstance(function.value, ast.Call) and isinstance(function.value.func, ast.Attribute):
            inner = function.value.func
            module = memory_ref(inner.value) if inner.attr == "state_dict" else None
            return None if module is None else _every_parameter(module)
        return None if holder is None else holder.item(ANY)
    return None


def _every_parameter(module: Ref) -> Ref:
    return Ref(module.root, (*module.steps, (ALL, "parameters")))


def comprehension_source(name: str, step: Step) -> Ref | None:
    """Return the path of what a comprehension's variable takes, when a statement has a comprehension that binds it."""
    for comprehension in step.comprehensions:
        for generator in comprehension.generators:
            target = generator.target
            if isinstance(target, ast.Name) and target.id == name:
                return _element_of(generator.iter, None)
            for index, part in enumerate(target.elts if isinstance(target, ast.Tuple) else ()):
                if isinstance(part, ast.Name) and part.id == name:
                    return _element_of(generator.iter, index)
    return None
