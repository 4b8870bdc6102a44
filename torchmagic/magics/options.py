"""What may stand behind `%%torchcheck`, read from the line and checked."""

from __future__ import annotations

import argparse
import difflib
import keyword
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from IPython.core.error import UsageError
from IPython.core.magic_arguments import MagicArgumentParser

from torchmagic.findings import LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
        raise UsageError(f"{error}: {line}") from None
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
        UsageError: a name that is no name, or a rule that does not exist.
    """
    output = parsed.output
    if output is not None and (not output.isidentifier() or keyword.iskeyword(output)):
        raise UsageError(f"-o wants the name of a variable, not {output!r}")
    return Options(
        device=parsed.device,
        only=_known_rules(parsed.only),
        ignore=_known_rules(parsed.ignore),
        level=parsed.level,
        strict=parsed.strict,
        output=output,
    )


def known_rule(name: str, names: Iterable[str]) -> str:
    """Return `name`, which is one of `names`.

    Raises:
        UsageError: it is not; the sentence says which rules have a name like it.
    """
    if name in names:
        return name
    close = difflib.get_close_matches(name, names)
    hint = f"did you mean {' or '.join(close)}?" if close else "%torchcheck list names them all"
    raise UsageError(f"no rule is called {name!r}; {hint}")


def rules_by_name() -> Mapping[str, Any]:
    """Return the rules that exist, which are read when somebody first asks."""
    from torchmagic.checking import rules

    return rules()


def _known_rules(lists: list[str]) -> tuple[str, ...]:
    names = [name.strip() for text in lists for name in text.split(",") if name.strip()]
    if not names:
        return ()
    existing = rules_by_name()
    return tuple(known_rule(name, existing) for name in names)


def _parser() -> MagicArgumentParser:
    parser = MagicArgumentParser("torchcheck", usage=argparse.SUPPRESS, description=_DESCRIPTION)  # type: ignore[no-untyped-call]
    add = parser.add_argument
    add("action", nargs="?", help=argparse.SUPPRESS)
    add("rule", nargs="?", help=argparse.SUPPRESS)
    add("-d", "--device", help="where tensors should be, such as cuda; inferred when left out")
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
