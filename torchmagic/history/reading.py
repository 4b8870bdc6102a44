"""Whether what is held is read as numbers, itself or what is made of it: `.item()`, `.tolist()`, `int(...)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.history.held import Held
from torchmagic.source import Program, Step
from torchmagic.source.refs import bare_name, read_names

_READING = frozenset({"item", "tolist", "numpy", "float", "int", "argmax"})


def is_read(held: Held, program: Program) -> bool:
    """Tell whether a statement reads a number off what is held, or off what is made together with it or of it."""
    names = _made_of(held.holder.root, program)
    return any(
        bare_name(call.func) in _READING and names & _operands(call) for step in program.steps for call in _calls(step)
    )


def _made_of(root: str, program: Program) -> set[str]:
    """Return the variables that are made of one, that one included."""
    names = {root}
    while True:
        more = set(names)
        for write in program.writes:
            if write.kind in ("bind", "augment", "store") and names & read_names(write.value):
                more.add(write.target.root)
        for step in program.steps:
            more |= _drawn(step, names)
        if more == names:
            return names
        names = more


def _drawn(step: Step, names: set[str]) -> set[str]:
    """Return the names that the comprehensions of a statement draw from some variables."""
    generators = (
        node for own in step.own_expressions() for node in ast.walk(own) if isinstance(node, ast.comprehension)
    )
    return {name for one in generators if names & read_names(one.iter) for name in read_names(one.target)}


def _calls(step: Step) -> Iterator[ast.Call]:
    for own in step.own_expressions():
        yield from (node for node in ast.walk(own) if isinstance(node, ast.Call))


def _operands(call: ast.Call) -> set[str]:
    """Return what a reading call reads: the value before its dot, else its arguments."""
    if isinstance(call.func, ast.Attribute):
        return read_names(call.func.value)
    return set().union(*map(read_names, call.args))
