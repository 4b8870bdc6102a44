"""What is kept of an operation that had to do with a bad value: no tensor, and nothing else of the user's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torchmagic.tracing.sites import Site

Kind = Literal["born", "passed", "entered", "written", "unwritten"]
"""born: made of operands without it. passed: made of operands with it. entered: read from memory that no watched
operation had made bad. written: the user's number, a fill or a constructor. unwritten: read from `torch.empty`."""


@dataclass(frozen=True)
class Operand:
    """A tensor that an operation was given.

    `name` is the path that named it on the user's line, or empty. `words` describe it (`float32 [128]`), and `seen`
    says what of its values explains the result (`3 of 128 values are exactly 0`), or is empty. `largest` is its
    greatest finite magnitude, where it was looked for. `attribute` names a parameter or buffer of the module that ran.
    """

    name: str
    words: str
    seen: str = ""
    largest: float = 0.0
    attribute: str = ""


@dataclass(frozen=True)
class Event:
    """An operation whose result held NaN or infinities.

    `number` counts events from 0; `parents` are the numbers of the events that made its operands bad. `operation` is
    its name in the dispatcher, such as `log` or `native_layer_norm`. `has_nan` tells that the result held NaN and not
    only infinities; `counts` how many of each, where that was counted. `site` is where the user called it; for an
    operation of a backward pass that is the line of `backward()`, `node` the graph's node (`LogBackward0`) and
    `forward` the site of the forward operation; `own_code` tells that a hook, a function or a checkpoint of the user's
    called it there, so that `site` is the place. `modules` are weak references to the modules that were running, the
    innermost first. `step` counts the backward passes begun before it. `expression` is what stands at that place.
    """

    number: int
    kind: Kind
    operation: str
    has_nan: bool
    site: Site
    parents: tuple[int, ...] = ()
    operands: tuple[Operand, ...] = ()
    counts: Any = None
    dtype: str = ""
    node: str = ""
    forward: Site | None = None
    modules: tuple[Any, ...] = ()
    step: int = 0
    expression: str = ""
    own_code: bool = False
