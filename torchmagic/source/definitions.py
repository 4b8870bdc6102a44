"""Definitions: what a name holds after a statement, and which definitions it was made from."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from torchmagic.source.refs import Ref, Steps
from torchmagic.source.scopes import Scope, Step


@dataclass(eq=False)
class Definition:
    """What one statement put under a name.

    `how` says by which means: `=`, `for`, `with`, the method or operator of a write, `entry` (it was there before the
    cell), `return` (the result of a function of the program), `backward`, `step` and `call` (gradients, parameters and
    buffers that a call of torch fills). `line` is the cell's line. `top` tells that the name is a variable of the cell.
    """

    key: str
    how: str
    top: bool
    line: int | None = None
    value: ast.expr | None = None
    step: Step | None = None
    looped: bool = False
    needs: set[Definition] = field(default_factory=set)
    """The definitions that the value was computed from."""
    before: set[Definition] = field(default_factory=set)
    """What the name held before, where a write adds to it."""
    hidden: set[Definition] = field(default_factory=set)
    """The definitions whose NaN the value leaves out; a gradient flows back to them all the same."""
    placed: Steps = ()
    """Where under the name the value was put; ANY stands for a place that the text does not tell."""
    taken: Steps = ()
    """Which part of the value it is: `b` of `a, b = f()` is the item 1."""

    @property
    def feeds_itself(self) -> bool:
        """Tell whether, in a loop, the value is computed from itself."""
        waiting, known = list(self.needs), set(self.needs)
        while waiting:
            definition = waiting.pop()
            if definition is self:
                return self.looped
            waiting += definition.needs - known
            known |= definition.needs
        return False

    def upstream(
        self, stops: Callable[[Definition], bool] = lambda _: False, *, beside: bool = True, hidden: bool = False
    ) -> Iterator[Definition]:
        """Yield this definition and those it was made from, nearest first.

        What a definition that `stops` was made from is left out; this definition itself never stops. With `beside`,
        what a name held before something was added to it counts too; with `hidden`, what an operation left NaN out of.
        """
        waiting, known = deque([self]), {self}
        while waiting:
            definition = waiting.popleft()
            yield definition
            if definition is not self and stops(definition):
                continue
            for need in sorted(
                (definition.needs | (definition.before if beside else set()) | (definition.hidden if hidden else set()))
                - known,
                key=lambda d: (-(d.line or 0), d.key),
            ):
                known.add(need)
                waiting.append(need)


@dataclass(eq=False)
class Frame:
    """One run of a function body, or the cell itself: which definitions its names have now.

    `aliases` are parameters that stand for a path of the caller.
    """

    scope: Scope
    ident: tuple[int, ...]
    line: int | None = None
    looped: bool = False
    names: dict[str, set[Definition]] = field(default_factory=dict)
    aliases: dict[str, tuple[Frame, Ref]] = field(default_factory=dict)
    shares: dict[str, tuple[Frame, Ref]] = field(default_factory=dict)
    """Loop variables that stand for an element of a container: what is written into them reaches the container."""
    returns: set[Definition] = field(default_factory=set)

    def lookup(self, key: str) -> set[Definition]:
        """Return the definitions of a name and of the attributes known under it."""
        if key in self.names:
            found = set(self.names[key])
        elif "." in key:
            return set(self.names.get(key.partition(".")[0], ()))
        else:
            found = set()
        prefix = key + "."
        for name, definitions in self.names.items():
            if name.startswith(prefix) and not name.endswith(GRAD):
                found |= definitions
        return found


GRAD = ".grad"
"""The end of the name under which the gradients of a module or tensor are kept."""
