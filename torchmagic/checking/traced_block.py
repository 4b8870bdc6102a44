"""Follow the operations of a `with` block, for code that runs outside of a notebook's magics."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from torchmagic.checking.engine import check, choose_rules, require_level
from torchmagic.findings import Level
from torchmagic.namespace import Snapshot, take_snapshot
from torchmagic.tracing.sites import is_top_level
from torchmagic.tracing.watch import Watch

if TYPE_CHECKING:
    from torchmagic.report import Report


class TracedBlock:
    """A `with` block whose operations are followed; see `torchmagic.trace`."""

    def __init__(self, *, device: str | None, only: Iterable[str], ignore: Iterable[str], level: Level) -> None:
        self._options: dict[str, Any] = {"device": device, "only": tuple(only), "ignore": tuple(ignore), "level": level}
        choose_rules(self._options["only"], self._options["ignore"])
        require_level(level)
        self._watch: Watch | None = None
        self._before: Snapshot | None = None
        self.report: Report | None = None
        """What was found, once the block has ended, by an exception too; None before."""

    def __enter__(self) -> TracedBlock:  # noqa: PYI034 - `Self` is younger than Python 3.10
        if self._watch is not None:
            raise RuntimeError("this block is being followed already; make another with torchmagic.trace()")
        frame = sys._getframe(1)  # noqa: SLF001
        self._line = frame.f_lineno
        self._watch = Watch()
        self._before = take_snapshot(_variables(frame))
        self._watch.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        watch, self._watch = self._watch, None
        if watch is None:
            return
        trace = watch.end()
        frame = sys._getframe(1)  # noqa: SLF001
        code = frame.f_code
        source = text_of_block("".join(linecache.getlines(code.co_filename)), code, self._line)
        self.report = check(
            _variables(frame),
            source=source,
            filename=code.co_filename,
            error=error,
            before=self._before,
            trace=trace,
            hidden=_own(frame, self),
            **self._options,
        )
        self._before = None


def _variables(frame: FrameType) -> Mapping[str, Any]:
    """Return the variables that a block's lines see: those of its module, and those of its function over them."""
    own = frame.f_globals if frame.f_locals is frame.f_globals else {**frame.f_globals, **frame.f_locals}
    return {name: value for name, value in own.items() if not name.startswith("__")}


def _own(frame: FrameType, block: TracedBlock) -> set[str]:
    return {name for name, value in _variables(frame).items() if value is block}


def text_of_block(text: str, code: CodeType, line: int) -> str | None:
    """Return the text to judge a block by, with the file's line numbers; None where the file has no text.

    It holds the statements beside the block and before it as if they stood at the top, and the block. For a block of
    the module's own code, all that stands above it; for one in a function, the module's imports, functions and classes.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    blocks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.With, ast.AsyncWith)) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not blocks:
        return None
    block = max(blocks, key=lambda node: node.lineno)
    lines = text.splitlines()
    kept = [""] * len(lines)
    for node in tree.body:
        is_above = (node.end_lineno or 0) < block.lineno
        is_around = node.lineno <= block.lineno <= (node.end_lineno or 0)
        if is_above if is_top_level(code) else isinstance(node, _DEFINITIONS) and not is_around:
            kept[node.lineno - 1 : node.end_lineno] = lines[node.lineno - 1 : node.end_lineno]
    siblings = next((body for body in _bodies(tree) if block in body), [block])
    for statement in siblings[: siblings.index(block) + 1]:
        _lift(statement, lines, kept)
    return "\n".join(kept)


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def _bodies(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if type(body) is list and body and isinstance(body[0], ast.stmt):
                yield body


def _lift(statement: ast.stmt, lines: list[str], kept: list[str]) -> None:
    """Keep the lines of a statement without its indentation."""
    indent = statement.col_offset
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    for index in range(first - 1, statement.end_lineno or 0):
        line = lines[index]
        kept[index] = line if line[:indent].strip() else line[indent:]
