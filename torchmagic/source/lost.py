"""Results that a statement makes and nobody gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.source.refs import bare_name
from torchmagic.source.scopes import Step


def conversions_that_stand_alone(step: Step) -> Iterator[ast.Call]:
    """Yield the calls whose result an expression statement drops, those in `[x.cuda() for x in xs]` too."""
    if isinstance(step.node, ast.Expr):
        yield from _dropped(step.node.value)


def _dropped(node: ast.expr) -> Iterator[ast.Call]:
    if isinstance(node, (ast.ListComp, ast.SetComp)):
        yield from _dropped(node.elt)
    elif isinstance(node, ast.DictComp):
        yield from _dropped(node.value)
    elif isinstance(node, ast.IfExp):
        yield from _dropped(node.body)
        yield from _dropped(node.orelse)
    elif isinstance(node, ast.BoolOp):
        yield from _dropped(node.values[-1])
    elif isinstance(node, ast.Tuple):
        for part in node.elts:
            yield from _dropped(part)
    elif isinstance(node, ast.Call):
        yield node


def is_bound_for_nothing(step: Step, name: str) -> bool:
    """Tell whether a statement binds a loop variable or a parameter anew and nothing reads it until it is bound again.

    `for t in tensors: t = t.to(device)` changes no element, `def move(x): x = x.to(device)` nothing of the caller's.
    A loop that takes its values apart, as over a loader, or ends with `break`, has another purpose.
    """
    scope, loop = step.scope, next((loop for loop in reversed(step.loops) if _binds(loop, name)), None)
    if name in scope.outer or _asks_for_locals(scope.node):
        return False
    if loop is None and (name not in scope.parameters or step.loops):
        return False
    if loop is not None and element_loop(step, name) is None:
        return False
    end = (step.node.end_lineno or step.line, step.node.end_col_offset or 0)
    return not any(
        isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Store)
        and ((part.lineno, part.col_offset) >= end or (loop is None and _is_in_inner_function(part, scope.node)))
        for part in ast.walk(scope.node)
    )  # fmt: skip


def _binds(loop: ast.AST, name: str) -> bool:
    target = getattr(loop, "target", None)
    return target is not None and any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target))


def element_loop(step: Step, name: str) -> ast.For | ast.AsyncFor | None:
    """Return the loop that binds a name to the elements themselves, of all that it loops over."""
    loop = next((loop for loop in reversed(step.loops) if _binds(loop, name)), None)
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return None
    whole = isinstance(loop.target, ast.Name) or (
        isinstance(loop.target, ast.Tuple)
        and isinstance(loop.iter, ast.Call)
        and bare_name(loop.iter.func) in ("items", "enumerate", "zip")
        and any(isinstance(place, ast.Name) and place.id == name for place in loop.target.elts)
    )
    return loop if whole and not any(isinstance(part, (ast.Break, ast.Return)) for part in ast.walk(loop)) else None


def _is_in_inner_function(part: ast.Name, scope: ast.AST) -> bool:
    """Tell whether a name stands in a nested function, which may run at any time."""
    nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    inner = [node for node in ast.walk(scope) if isinstance(node, nested) and node is not scope]
    return any(part is node for function in inner for node in ast.walk(function))


def _asks_for_locals(scope: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Call) and bare_name(node.func) in ("locals", "vars", "globals") for node in ast.walk(scope)
    )


def is_guarded_as_tensor(step: Step, path: str) -> bool:
    """Tell whether a test around a statement lets only tensors through: `if torch.is_tensor(v):`."""
    return any(
        isinstance(node, ast.If)
        and any(part is step.node for inner in node.body for part in ast.walk(inner))
        and _tests_for_tensor(node.test, path)
        for node in ast.walk(step.scope.node)
    )


def _tests_for_tensor(test: ast.expr, path: str) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_tests_for_tensor(part, path) for part in test.values)
    if not isinstance(test, ast.Call) or not test.args or ast.unparse(test.args[0]) != path:
        return False
    function = bare_name(test.func)
    return function == "is_tensor" or (
        function == "isinstance" and len(test.args) == 2 and bare_name(test.args[1]) == "Tensor"
    )
