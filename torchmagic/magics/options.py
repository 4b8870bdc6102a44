"""What may stand behind `%%torchcheck`, read from the line and checked."""

from __future__ import annotations

import argparse
import keyword
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from IPython.core.error import UsageError
from IPython.core.magic_arguments import MagicArgumentParser

from torchmagic.findings import LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchmagic.findings import Level

_DESCRIPTION: Final = """\
Find PyTorch's classic mistakes among the variables of the notebook.

  %%torchcheck [options]       run the cell, then report on what it left in the namespace
  %torchcheck [options]        report on the namespace as it is now
  %torchcheck on [options]     report after every cell;  %torchcheck off  ends it
  %torchcheck explain RULE     the lesson behind a rule: why, bad cell, good cell
  %torchcheck list             all rules, one line each

A comment  # torchcheck: ignore[RULE]  at the end of a line silences that rule for that line.
"""

ACTIONS: Final = ("on", "off", "explain", "list")


@dataclass(frozen=True)
class Options:
    """The options of one check. `rules` that are empty mean every rule."""

    device: str | None = None
    only: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    level: Level = "warning"
    strict: bool = False
    trace: bool = False
    output: str | None = None

    def for_check(self) -> dict[str, Any]:
        """Return the options that `torchmagic.check` knows."""
        return {"device": self.device, "only": self.only, "ignore": self.ignore, "level": self.level}


def parse(line: str) -> argparse.Namespace:
    """Split and parse what stands behind the magic.

    Raises:
        UsageError: it makes no sense; the sentence says why.
    """
    try:
        # Intermixed, so that an action may stand behind options.
        parsed = _PARSER.parse_intermixed_args(shlex.split(line))
    except ValueError as error:
        raise UsageError(f"{error}: {line.removeprefix('--cell ')}") from None
    if parsed.action not in {None, *ACTIONS}:
        raise UsageError(f"unrecognized arguments: {parsed.action}; the actions are {', '.join(ACTIONS)}")
    if parsed.rule is not None and parsed.action != "explain":
        raise UsageError(f"unrecognized arguments: {parsed.rule}")
    if parsed.rule is None and parsed.action == "explain":
        raise UsageError("explain wants a rule; %torchcheck list names them all")
    if parsed.cell and parsed.action is not None:
        raise UsageError(f"{parsed.action} has a line of its own: %torchcheck {parsed.action}")
    return parsed


def help_text() -> str:
    """Return what `-h` and `?` show."""
    return _PARSER.format_help()


def with_help(function: Callable[..., None]) -> Callable[..., None]:
    """Give a magic function the help as its docstring, which is what IPython shows for `?`."""
    function.__doc__ = help_text()
    return function


def options_from(parsed: argparse.Namespace) -> Options:
    """Return the checked options of a parsed line.

    Raises:
        UsageError: a name that is no name, or a rule or device that does not exist.
    """
    options = Options(
        device=parsed.device,
        only=_names(parsed.only),
        ignore=_names(parsed.ignore),
        level=parsed.level,
        strict=parsed.strict,
        trace=parsed.trace,
        output=output_name(parsed),
    )
    if options.device or options.only or options.ignore:
        require_known(options)
    return options


def output_name(parsed: argparse.Namespace) -> str | None:
    """Return the name of the variable that `-o` wants the report in, or None.

    Raises:
        UsageError: it is no name of a variable.
    """
    output: str | None = parsed.output
    if output is not None and (not output.isidentifier() or keyword.iskeyword(output)):
        raise UsageError(f"-o wants the name of a variable, not {output!r}")
    return output


def require_known(options: Options) -> None:
    """Let the engine say what it does not know while there is nothing to check, before the cell runs.

    Raises:
        UsageError: a rule or device that does not exist; devices are known once torch is imported.
    """
    try:
        from torchmagic.checking import check

        check({}, **options.for_check())
    except ValueError as error:
        raise UsageError(str(error)) from None
    except Exception:
        # The cell is not to blame, and runs; its report will say what is wrong.
        return


def _names(lists: list[str]) -> tuple[str, ...]:
    """Take comma-separated lists apart."""
    return tuple(name.strip() for names in lists for name in names.split(",") if name.strip())


def _parser() -> MagicArgumentParser:
    parser = MagicArgumentParser("torchcheck", usage=argparse.SUPPRESS, description=_DESCRIPTION)  # type: ignore[no-untyped-call]
    add = parser.add_argument
    add("action", nargs="?", help=argparse.SUPPRESS)
    add("rule", nargs="?", help=argparse.SUPPRESS)
    add("-d", "--device", help="where tensors should be, such as cuda; inferred when left out")
    add(
        "-t",
        "--trace",
        action="store_true",
        help="follow the cell operation by operation: where was the first NaN born?",
    )
    add("--only", action="append", default=[], metavar="RULES", help="run these rules alone: RULE[,RULE]")
    add("--ignore", action="append", default=[], metavar="RULES", help="leave these rules out: RULE[,RULE]")
    add(
        "--level",
        choices=LEVELS,
        default="warning",
        metavar="LEVEL",
        help="least level to show: note, warning (if left out) or error",
    )
    add("--strict", action="store_true", help="findings at warning or above make the cell fail")
    add("-o", "--output", metavar="NAME", help="keep the report in this variable")
    add("-h", "--help", action="store_true", help="show this help; the cell does not run")
    # What the first line of a checked cell becomes; see torchmagic.cells.transformer.
    add("--cell", action="store_true", help=argparse.SUPPRESS)
    return parser


_PARSER: Final = _parser()
