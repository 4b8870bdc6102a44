"""Turn the first line of a cell, `%%torchcheck ARGS` or `%%gpumem ARGS`, into a call that arms the magic, and back.

The transformer is pure, since ipykernel transforms a cell twice before it runs once, and it never changes the number
of lines, so that the magic's line is line 1 in every traceback.
"""

from __future__ import annotations
import __future__

import ast
import re
import tokenize
from typing import TYPE_CHECKING, Final, NamedTuple

from IPython.core.inputtransformer2 import cell_magic

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES: Final = "torchcheck|gpumem"

MAGIC_LINE: Final = re.compile(rf"%%(?P<name>{_NAMES})(?=\s|$)(?P<args>.*)", re.DOTALL)

_CALL: Final = re.compile(
    rf"get_ipython\(\)\.run_line_magic\('(?P<name>{_NAMES})', "
    r"(?P<line>(?P<quote>['\"])--cell(?:\\.|(?!(?P=quote)).)*(?P=quote))\)"
)

_CALL_BEHIND: Final = re.compile("; " + _CALL.pattern)

_HELP_OPTIONS: Final = frozenset({"-h", "--help"})


def arm_cell(lines: list[str]) -> list[str]:
    """Return the cell's lines with its first line turned into the call that arms the magic.

    The call stands behind `from __future__` imports and above other cell magics; when another magic of these follows,
    both are armed. A cell that does not begin with one of them comes back as it is.
    """
    match = MAGIC_LINE.match(lines[0]) if lines else None
    if match is None:
        return lines
    name, args, body = match["name"], match["args"].strip(), lines[1:]
    if _HELP_OPTIONS.intersection(args.split()):
        # Help is a question, and a cell with a question in it does not run.
        return [f"get_ipython().run_line_magic({name!r}, '--help')\n", *_blank(len(body))]
    call = _call(name, args)
    first = next((index for index, line in enumerate(body) if not line.isspace()), None)
    second = None if first is None else MAGIC_LINE.match(body[first])
    if second is not None and second["name"] != name:
        body[first:] = arm_cell(body[first:])
        if _HELP_OPTIONS.intersection(second["args"].split()):
            return ["\n", *body]
    elif first is not None and body[first].startswith("%%"):
        return [call + "\n", *_blank(first), *cell_magic(body[first:])]  # type: ignore[no-untyped-call]
    place = _end_of_future_imports(body)
    if place is None:
        return [call + "\n", *body]
    line = body[place.row]
    body[place.row] = f"{line[: place.column]}; {call}{line[place.column :]}"
    return [_comment(name, args), *body]


# A terminal asks every transformer without side effects whether the input is complete, and would run the cell after
# its first line; see `TransformerManager.check_complete`.
arm_cell.has_side_effects = True  # type: ignore[attr-defined]


def line_as_typed(line: str) -> str:
    """Return a line of an armed cell as the user typed it, or with the magic as a comment.

    A comment and not the bare magic, so that tools which parse the source around a frame still can.
    """
    call = _CALL.fullmatch(line.rstrip())
    if call is not None:
        return _comment(call["name"], ast.literal_eval(call["line"]).removeprefix("--cell"))
    return _CALL_BEHIND.sub("", line)


def _call(name: str, args: str) -> str:
    return f"get_ipython().run_line_magic({name!r}, {f'--cell {args}'.strip()!r})"


def _comment(name: str, args: str) -> str:
    return f"#%%{name} {args.strip()}".rstrip() + "\n"


def _blank(count: int) -> list[str]:
    return ["\n"] * count


class _Place(NamedTuple):
    """A place in a list of lines; both numbers count from zero."""

    row: int
    column: int


def _end_of_future_imports(lines: list[str]) -> _Place | None:
    """Find where the last `from __future__` import at the head of `lines` ends.

    Python wants these imports before every other statement but the docstring. An import of a feature that does not
    exist is left for Python to refuse.
    """
    place = None
    try:
        for index, statement in enumerate(_statements(lines)):
            features = _future_features(statement)
            if features:
                if not features.issubset(__future__.all_feature_names):
                    return None
                row, column = statement[-1].end
                place = _Place(row - 1, column)
            elif index > 0 or any(token.type != tokenize.STRING for token in statement):
                break
    except (tokenize.TokenError, SyntaxError):
        # IPython syntax or a mistake further down: what came before it is known.
        pass
    return place


def _statements(lines: list[str]) -> Iterator[list[tokenize.TokenInfo]]:
    """Yield the tokens of each simple statement, one after the other, read no further than asked."""
    between = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(iter(lines).__next__):
        if token.type == tokenize.NEWLINE or token.string == ";":
            if statement:
                yield statement
            statement = []
        elif token.type not in between:
            statement.append(token)


def _future_features(statement: list[tokenize.TokenInfo]) -> set[str]:
    """Return the features that a `from __future__ import ...` statement names; of any other statement, none."""
    words = [token.string for token in statement if token.string not in "(),"]
    if words[:3] != ["from", "__future__", "import"]:
        return set()
    names = words[3:]
    return {name for position, name in enumerate(names) if name != "as" and names[position - 1 : position] != ["as"]}
