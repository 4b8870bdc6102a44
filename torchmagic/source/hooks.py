"""Functions of the program that a module runs in each of its forward passes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchmagic.source.scopes import Scope

if TYPE_CHECKING:
    from torchmagic.source.program import Program

REGISTRATIONS = ("register_forward_hook", "register_forward_pre_hook", "register_module_forward_hook")


def forward_hooks(program: Program) -> Iterator[Scope]:
    """Yield the functions that are registered as forward hooks, by name or by the function that makes them."""
    for registration in REGISTRATIONS:
        for call, step in program.calls_of(registration):
            for argument in call.args[:1]:
                if isinstance(argument, ast.Lambda):
                    yield Scope(argument, step.scope.unit, step.scope)
                made = argument.func if isinstance(argument, ast.Call) else argument
                name = made.attr if isinstance(made, ast.Attribute) else getattr(made, "id", None)
                for scope in program.scopes:
                    outer = scope.parent if isinstance(argument, ast.Call) else scope
                    if name is not None and outer is not None and outer.name == name:
                        yield scope
