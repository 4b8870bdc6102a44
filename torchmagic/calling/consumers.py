"""What a call does with its arguments: take their values, keep them, or call them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Any

from torchmagic.checking.expressions import kind_of, live_value
from torchmagic.checking.facts import Facts
from torchmagic.kinds import is_from, is_from_torch, kind_of_value
from torchmagic.namespace.resolve import MISSING
from torchmagic.source import Program, Scope
from torchmagic.source.refs import bare_name
from torchmagic.source.uses import Use, UseKind, uses_of

_TAKES_VALUES = frozenset(
    {
        "print", "float", "int", "round", "abs", "sum", "max", "min", "len", "list", "tuple", "sorted", "set", "dict",
        "enumerate", "zip", "format", "range", "any", "all", "divmod", "pow", "reversed", "bool", "complex",
    }
)  # fmt: skip
_TAKES_FUNCTIONS = frozenset(
    {
        "compile", "vmap", "grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "jacobian", "hessian", "vhp",
        "hvp", "functional_call", "trace", "script", "checkpoint", "checkpoint_sequential", "make_fx", "wrap",
        "apply", "map_", "apply_", "spawn", "Timer", "disable", "ignore", "typename", "is_tensor", "overrides",
        "vectorize", "apply_along_axis", "frompyfunc", "fromfunction", "piecewise", "allow_in_graph", "register_hook",
        "cond", "scan", "while_loop", "save_on_cpu", "saved_tensors_hooks", "no_grad", "enable_grad",
        "inference_mode", "export", "custom_bwd", "custom_fwd", "autocast", "symbolic_trace", "is_scripting",
        "unused", "make_graphed_callables",
    }
)  # fmt: skip
_KEEPS = frozenset({"append", "appendleft", "extend", "insert", "add", "setdefault", "update"})
_LOGS = frozenset(
    {"add_scalar", "add_scalars", "set_postfix", "set_description", "log", "log_metric", "log_metrics", "log_dict"}
)
_FUNCTION_KEYWORDS = frozenset(
    {"key", "fn", "func", "function", "callback", "target", "hook", "closure", "initializer"}
)


def stores(call: ast.Call) -> bool:
    """Tell whether a call puts its arguments into a container."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in _KEEPS


def consumes(facts: Facts, call: ast.Call, use: Use, *, is_value: bool) -> bool:
    """Tell whether a call makes use of the value of an argument, so that a function there is a mistake."""
    name = bare_name(call.func)
    if any(keyword.value is use.via and keyword.arg in _FUNCTION_KEYWORDS for keyword in call.keywords):
        return False
    if name in _TAKES_FUNCTIONS or name.startswith("register_"):
        return False
    live = live_value(facts, call.func, use.step)
    if isinstance(call.func, ast.Name) and live is getattr(builtins, name, MISSING):
        return is_value and name in _TAKES_VALUES
    if _takes_values(facts, call.func, live, use):
        return is_value
    if (name == "format" or name in _LOGS) and not _is_called_inside(facts, call, use):
        return is_value and kind_of(facts, getattr(use.node, "value", None), use.step) == "tensor"
    if facts.program is not None and (verdict := _parameter_verdict(facts.program, call, use)) is not None:
        return verdict and is_value
    return is_value and fails_here(facts, use)


def _takes_values(facts: Facts, function: ast.expr, live: Any, use: Use) -> bool:
    """Tell whether a function of torch, numpy, math or copy, a torch layer or a tensor's method is called."""
    if live is not MISSING:
        if kind_of_value(live) == "module":
            return is_from_torch(type(live))
        if is_from(live, "numpy", "math") or (is_from(live, "copy") and bare_name(function) in ("copy", "deepcopy")):
            return True
        if is_from_torch(live) and kind_of_value(getattr(live, "__self__", None)) is None:
            return True
    if isinstance(function, ast.Attribute):
        receiver = kind_of(facts, function.value, use.step)
        return receiver == "tensor" or (receiver is not None and function.attr == "load_state_dict")
    return False


def _parameter_verdict(program: Program, call: ast.Call, use: Use) -> bool | None:
    """Read a function of the program that takes the argument: True when it computes with it, False when it calls it."""
    verdicts = [_computes_with(program, scope, parameter) for scope, parameter in _taken_as(program, call, use)]
    return all(verdicts) if verdicts else None


def _is_called_inside(facts: Facts, call: ast.Call, use: Use) -> bool:
    """Tell whether a function of the program calls what it is given here."""
    program = facts.program
    return program is not None and any(
        "call" in _uses_inside(program, scope, parameter) for scope, parameter in _taken_as(program, call, use)
    )


def _taken_as(program: Program, call: ast.Call, use: Use) -> Iterator[tuple[Scope, str]]:
    """Yield the functions of the program that a call runs, each with its parameter that takes the argument."""
    for scope in program.scopes:
        if any(known.node is call for known in (program.callers(scope) if scope.name else ())):
            parameter = _parameter_of(scope, call, use)
            if parameter is not None:
                yield scope, parameter


def _parameter_of(scope: Scope, call: ast.Call, use: Use) -> str | None:
    for keyword in call.keywords:
        if keyword.value is use.via:
            return keyword.arg if keyword.arg in scope.parameters else None  # `**values` takes it
    if use.via not in call.args:
        return None
    index = call.args.index(use.via) + (1 if scope.class_name is not None else 0)
    return scope.parameters[index] if index < len(scope.parameters) else None


def _computes_with(program: Program, scope: Scope, parameter: str) -> bool:
    """Tell whether a function adds, compares or formats a parameter and never calls it or hands it on."""
    kinds = _uses_inside(program, scope, parameter)
    return bool(kinds & {"arithmetic", "format", "iteration", "subscript"}) and not kinds & {
        "call",
        "argument",
        "other",
    }


def _uses_inside(program: Program, scope: Scope, parameter: str) -> set[UseKind]:
    """Return what a function does with a parameter."""
    return {
        use.kind
        for step in program.steps
        if step.scope is scope
        for use in uses_of(step, (ast.Name,))
        if isinstance(use.node, ast.Name) and use.node.id == parameter and isinstance(use.node.ctx, ast.Load)
    }


def fails_here(facts: Facts, use: Use) -> bool:
    """Tell whether the cell's error arose in this statement and speaks of a method."""
    message = str(facts.error) if isinstance(facts.error, (TypeError, AttributeError, RuntimeError)) else ""
    end = use.step.node.end_lineno or use.step.line
    return "method" in message and any(f.is_cell and use.step.line <= f.line <= end for f in facts.failed_frames)
