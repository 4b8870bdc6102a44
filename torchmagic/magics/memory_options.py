"""What may stand behind `%gpumem`, read from the line and checked."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass
from typing import Final

from IPython.core.error import UsageError
from IPython.core.magic_arguments import MagicArgumentParser

from torchmagic.magics.options import output_name

_DESCRIPTION: Final = """\
Show where the memory of every device went, by variable name.

  %gpumem [options]            a bar for each device, and who holds its tensors
  %gpumem model optimizer      open these variables, down to modules and layers
  %gpumem --live [SECONDS]     a panel that refreshes while cells run;  %gpumem stop  ends it
  %gpumem --free               let go of what only the notebook's history holds
  %%gpumem [options]           run the cell, then show what it did to memory, and which names grew
"""

_MOST_TOP: Final = 1000
_LEAST_INTERVAL, _MOST_INTERVAL = 0.1, 60.0

STOP: Final = "stop"
"""What ends the panel."""


@dataclass(frozen=True)
class MemoryOptions:
    """The options of one look. `paths` are the variables to open, and `top` how many holders to show."""

    paths: tuple[str, ...] = ()
    top: int = 10
    text: bool = False
    output: str | None = None
    exact: bool = False


def parse(line: str) -> argparse.Namespace:
    """Split and parse what stands behind the magic.

    Raises:
        UsageError: it makes no sense; the sentence says why.
    """
    try:
        # Not by a shell's rules for quotes, which are part of a path such as history['loss'].
        words = line.split() if "'" in line or '"' in line else shlex.split(line)
        parsed: argparse.Namespace = _PARSER.parse_intermixed_args(words)
    except ValueError as error:
        raise UsageError(f"{error}: {line.removeprefix('--cell ')}") from None
    if parsed.cell and parsed.paths:
        raise UsageError(f"{parsed.paths[0]} has a line of its own: %gpumem {parsed.paths[0]}")
    if parsed.exact and not parsed.cell:
        raise UsageError("--exact counts while a cell runs: %%gpumem --exact above it")
    if parsed.live is not None:
        if parsed.cell or parsed.paths or parsed.free:
            raise UsageError("--live has a line of its own: %gpumem --live [SECONDS]")
        if not _LEAST_INTERVAL <= parsed.live <= _MOST_INTERVAL:
            raise UsageError(f"--live wants {_LEAST_INTERVAL:g} to {_MOST_INTERVAL:g} seconds, not {parsed.live:g}")
    if parsed.free and (parsed.cell or parsed.paths):
        raise UsageError("--free has a line of its own: %gpumem --free")
    return parsed


def options_from(parsed: argparse.Namespace) -> MemoryOptions:
    """Return the checked options of a parsed line.

    Raises:
        UsageError: a name that is no name, or a number that makes no sense.
    """
    output = output_name(parsed)
    if not 1 <= parsed.top <= _MOST_TOP:
        raise UsageError(f"--top wants a number from 1 to {_MOST_TOP:,}, not {parsed.top}")
    return MemoryOptions(tuple(parsed.paths), parsed.top, parsed.text, output, parsed.exact)


def help_text() -> str:
    """Return what `-h` and `?` show."""
    return _PARSER.format_help()


def _parser() -> MagicArgumentParser:
    parser = MagicArgumentParser("gpumem", usage=argparse.SUPPRESS, description=_DESCRIPTION)  # type: ignore[no-untyped-call]
    add = parser.add_argument
    add("paths", nargs="*", metavar="VARIABLE", help="a variable, or a path such as model.encoder")
    add("--top", type=int, default=10, metavar="N", help="show this many holders of each device (10 if left out)")
    add(
        "--live",
        nargs="?",
        type=float,
        const=1.0,
        metavar="SECONDS",
        help="a panel that refreshes while cells run, every second if left out",
    )
    add(
        "--free",
        action="store_true",
        help="let go of Out, the last exception and the last result, empty the caches, and say what came back",
    )
    add(
        "--exact",
        action="store_true",
        help="under %%%%gpumem, count the host's tensors operation by operation: their own peak, in more time",
    )
    add("--text", action="store_true", help="show text, also where HTML could be shown")
    add("-o", "--output", metavar="NAME", help="keep the report in this variable")
    add("-h", "--help", action="store_true", help="show this help; the cell does not run")
    # What the first line of a cell becomes; see torchmagic.cells.transformer.
    add("--cell", action="store_true", help=argparse.SUPPRESS)
    return parser


_PARSER: Final = _parser()
