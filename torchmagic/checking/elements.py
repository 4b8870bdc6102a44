"""What a loop draws its values from, as far as the text shows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.checking.facts import Facts
from torchmagic.source import Scope, Step
from torchmagic.source.calls import argument_node
from torchmagic.source.refs import bare_name

Display = ast.List | ast.Tuple | ast.Set | ast.Dict | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_PASSES_ON = ("tqdm", "reversed", "list", "tuple", "sorted", "iter")
_DEEPEST = 5


def drawn_from(values: ast.expr, target: ast.AST, name: str) -> tuple[ast.expr, ast.AST]:
    """Look through `enumerate`, `zip`, `items` and the like: return what a name is drawn from, and its place.

    Args:
        values: what is looped over.
        target: what each value is bound to.
        name: the name in question.
    """
    while isinstance(values, ast.Call):
        function, places = bare_name(values.func), target.elts if isinstance(target, ast.Tuple) else []
        if isinstance(method := values.func, ast.Attribute):
            if function == "values" and not values.args:
                values = method.value
            elif function == "items" and len(places) == 2 and _holds(places[1], name):
                values, target = method.value, places[1]
            else:
                break
        elif function == "enumerate" and len(places) == 2 and values.args:
            values, target = values.args[0], places[1]
        elif function == "zip" and len(places) == len(values.args):
            values, target = next(
                ((part, place) for part, place in zip(values.args, places, strict=True) if _holds(place, name)),
                (values.args[0], places[0]),
            )
        elif function in _PASSES_ON and values.args:
            values = values.args[0]
        else:
            break
    return values, target


def _holds(place: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(place))


def displays(facts: Facts, node: ast.expr, step: Step, depth: int = _DEEPEST) -> Iterator[tuple[Display, Step]]:
    """Yield the lists, dicts and comprehensions of the text that an expression stands for."""
    if isinstance(node, _DISPLAYS):
        yield node, step
    if not isinstance(node, ast.Name) or facts.program is None or not depth:
        return
    owner = _owner(step.scope, node.id)
    for write in facts.program.binds_of(node.id, owner):
        if write.how == "=" and write.position is None and write.value is not None and write.value is not node:
            yield from displays(facts, write.value, write.step, depth - 1)
    for argument, at in arguments(facts, owner, node.id):
        yield from displays(facts, argument, at, depth - 1)


def _owner(scope: Scope, name: str) -> Scope:
    """Return the scope in which a name lives, that of a function's `*args` too."""
    spread = scope.node.args.vararg if not isinstance(scope.node, ast.Module) else None
    return scope if spread is not None and spread.arg == name else scope.owner_of(name)


def arguments(facts: Facts, owner: Scope, name: str) -> Iterator[tuple[ast.expr, Step]]:
    """Yield what the callers of a function hand over for a parameter; for `*args`, a tuple of the rest."""
    if facts.program is None or isinstance(owner.node, ast.Module):
        return
    spread = owner.node.args.vararg
    first = len(owner.node.args.posonlyargs) + len(owner.node.args.args) - (owner.class_name is not None)
    if name not in owner.parameters and (spread is None or spread.arg != name):
        return
    for call in facts.program.callers(owner):
        if spread is not None and spread.arg == name:
            if isinstance(call.node, ast.Call):
                yield ast.Tuple(list(call.node.args[first:]), ast.Load()), call.step
        elif (argument := argument_node(call, owner, name)) is not None:
            yield argument, call.step


def parts_of_display(display: Display) -> list[ast.expr]:
    """Return the elements that a display shows: the values of a dict, the one expression of a comprehension."""
    if isinstance(display, ast.Dict):
        return list(display.values)
    if isinstance(display, ast.DictComp):
        return [display.value]
    return list(display.elts) if isinstance(display, (ast.List, ast.Tuple, ast.Set)) else [display.elt]
