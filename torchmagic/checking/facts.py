"""Everything a rule may know about a cell: its live objects, its text and its outcome, joined."""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from torchmagic.checking.memory import Memory
from torchmagic.checking.usercode import earlier_texts, is_text_of
from torchmagic.kinds import is_from_torch, kind_of_value
from torchmagic.namespace import Namespace, Place, Seen, Snapshot, version_of
from torchmagic.namespace.resolve import MISSING, get_attribute, resolve
from torchmagic.source import ANY, Program, Ref, Scope, SourceText, Write
from torchmagic.source.program import CLASS, CLOSURE
from torchmagic.source.user_files import is_user_file

if TYPE_CHECKING:
    from torchmagic.tracing.trace import Trace


@dataclass(frozen=True)
class FailedFrame:
    """A frame of the user's code in the traceback of the cell's error, the outermost first."""

    filename: str
    line: int
    function: str
    variables: Mapping[str, Any]
    is_cell: bool


class Facts:
    """The facts of one look. They hold the user's objects: drop them as soon as the report is made.

    Args:
        found: the live objects.
        source: the cell, or None when a namespace is looked at without one.
        error: the exception that ended the cell.
        before: what was noted before the cell ran.
        device: the device that tensors should be on, when the user said so.
        memory: what earlier reports read and showed.
        trace: what a watch saw of the cell's operations.
        title_of: the name people know a file by, such as `In[3]` for a cell; empty when it has none.
    """

    def __init__(
        self,
        found: Namespace,
        *,
        source: SourceText | None = None,
        error: BaseException | None = None,
        before: Snapshot | None = None,
        device: str | None = None,
        memory: Memory | None = None,
        trace: Trace | None = None,
        title_of: Callable[[str], str] | None = None,
    ) -> None:
        self.found = found
        self.source = source
        self.error = error
        self.before = before
        self.device = device
        self.memory = memory
        self.trace = trace
        self.title_of = title_of or (lambda _filename: "")
        self.at_end: list[Callable[[], None]] = []
        """What to call when the look is over, for those who build cycles out of the user's objects."""
        self._writes_by_place: dict[int, list[Write]] = {}

    def forget(self) -> None:
        """Let go of the user's objects at once, where objects that refer to each other would hold them for a while."""
        for let_go in self.at_end:
            let_go()
        vars(self).clear()

    @cached_property
    def program(self) -> Program | None:
        """The cell's statements and those of the functions it uses; None without a cell that parses."""
        if self.source is None or self.source.tree is None:
            return None
        return Program(self.source, earlier_texts(self.found, self.source), self.runs, self.is_foreign)

    def value(self, ref: Ref, scope: Scope | None = None) -> Any:
        """Return the live object a path leads to at the end of the cell, or MISSING.

        Inside a method, `self` is taken to be some instance of the class.
        """
        if scope is not None and not isinstance((owner := scope.owner_of(ref.root)).node, ast.Module):
            if owner.class_name is None or owner.parameters[:1] != [ref.root]:
                return MISSING
            obj = self._instances.get(owner.class_name, MISSING)
            for kind, key in ref.steps:
                obj = get_attribute(obj, key) if kind == "attr" and obj is not MISSING else MISSING
            return obj
        if ref.root not in self.found.names:
            return getattr(builtins, ref.root, MISSING) if not ref.steps else MISSING
        return resolve(self.found.names, ref.root, ref.steps)

    @cached_property
    def _instances(self) -> dict[str, Any]:
        """One live instance of each class, by the names of the class and its bases."""
        instances: dict[str, Any] = {}
        for seen in self.found.seen.values():
            for kind in type.__getattribute__(type(seen.obj), "__mro__")[:-1]:
                instances.setdefault(kind.__name__, seen.obj)
        return instances

    def runs(self, ref: Ref, at: Scope, target: Scope, by_item: bool) -> bool:
        """Tell whether calling (or indexing) the live object at a path runs the function of a scope."""
        obj = self.value(ref, at)
        if obj is MISSING:
            return False
        if type(obj) is types.FunctionType:
            return target.class_name is None and not by_item and obj.__code__.co_name == target.name
        if self.program is not None and target in self.program.forward_hooks:
            return not by_item and kind_of_value(obj) == "module"
        if target.class_name is None or target.name not in (("__getitem__",) if by_item else ("forward", "__call__")):
            return False
        return any(
            kind.__name__ == target.class_name
            for part in parts_run_by(obj)
            for kind in type.__getattribute__(type(part), "__mro__")
        )

    def is_foreign(self, ref: Ref, at: Scope, target: Scope) -> bool:
        """Tell whether the method that the live object at a path has is not the one of a scope: `optimizer.step()`."""
        obj = self.value(ref, at)
        kind = type(obj)
        if obj is MISSING or issubclass(kind, type):
            return False
        if kind is types.ModuleType:
            return True
        for base in type.__getattribute__(kind, "__mro__"):
            if target.name in type.__getattribute__(base, "__dict__"):
                return bool(base.__name__ != target.class_name)
        return False

    def writes_to(self, seen: Seen) -> list[Write]:
        """Return the writes of the program whose target is the object or a container that holds it, in order."""
        if self.program is None:
            return []
        key = id(seen)
        if key not in self._writes_by_place:
            self._writes_by_place[key] = [
                write
                for write, spellings in self._spelled_writes
                if any(matches(ref, place) for ref in spellings for place in seen.places)
            ]
        return self._writes_by_place[key]

    @cached_property
    def _spelled_writes(self) -> list[tuple[Write, list[Ref]]]:
        if self.program is None:
            return []
        return [(write, self.program.spellings(write.target, write.step.scope)) for write in self.program.writes]

    def spellings(self, write: Write) -> list[Ref]:
        """Return the top-level paths of a write's target."""
        return next((spellings for known, spellings in self._spelled_writes if known is write), [])

    def line_of(self, write: Write) -> int | None:
        """Return the cell's line of a write: its own, or that of the cell's call that leads to it."""
        if write.step.scope.unit.is_cell:
            return write.line
        contexts = self.program.contexts(write.step) if self.program is not None else []
        return next((context.line for context in contexts if context.line is not None), None)

    @cached_property
    def changed_names(self) -> set[str]:
        """The variables that the cell bound, or whose content it is seen to write."""
        names = {ref.root for _, spellings in self._spelled_writes for ref in spellings}
        if self.before is not None:
            names |= {name for name, value in self.found.names.items() if self.before.is_rebound(name, value)}
            for seen in self.found.of_kind("tensor"):
                if self.version_moved(seen.obj):
                    names |= {place.root for place in seen.places}
        return names

    @cached_property
    def read_names(self) -> set[str]:
        """The variables that the cell's text mentions."""
        tree = self.source.tree if self.source is not None else None
        return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree is not None else set()

    def is_earlier(self, root: str) -> bool:
        """Tell whether a variable is from earlier cells: this one neither changed nor mentions it."""
        if self.source is None:
            return False
        return root not in self.changed_names and root not in self.read_names

    def version_moved(self, tensor: Any) -> bool:
        """Tell whether the tensor was written in place during the cell; one made by the cell counts from 0."""
        now = version_of(tensor)
        was = self.before.version_before(tensor) if self.before is not None else None
        return now is not None and now > (was or 0)

    @cached_property
    def failed_frames(self) -> list[FailedFrame]:
        """The user's frames of the error's traceback, the outermost first."""
        entries: list[tuple[TracebackType, bool]] = []
        trace = self.error.__traceback__ if self.error is not None else None
        while trace is not None:
            filename = trace.tb_frame.f_code.co_filename
            if is_user_file(filename):
                entries.append((trace, self.source is not None and is_text_of(filename, self.source)))
            trace = trace.tb_next
        # What stands above the cell ran it, and still runs: such a frame would keep the values that it was asked for.
        first = next((index for index, (_, is_cell) in enumerate(entries) if is_cell), 0)
        return [_failed_frame(entry, is_cell) for entry, is_cell in entries[first:]]


def _failed_frame(entry: TracebackType, is_cell: bool) -> FailedFrame:
    code = entry.tb_frame.f_code
    return FailedFrame(code.co_filename, entry.tb_lineno, code.co_name, entry.tb_frame.f_locals, is_cell)


def parts_run_by(obj: Any) -> Iterator[Any]:
    """Yield what a call of an object runs: itself, and the modules that a container of torch's runs in turn."""
    waiting, known = [obj], set()
    while waiting:
        part = waiting.pop()
        if id(part) in known:
            continue
        known.add(id(part))
        yield part
        if kind_of_value(part) == "module" and is_from_torch(type(part)):
            children = object.__getattribute__(part, "__dict__").get("_modules")
            if issubclass(type(children), dict):
                waiting += [child for child in dict.values(children) if child is not None]


def matches(ref: Ref, place: Place) -> bool:
    """Tell whether a written path leads to a place or to a holder of it."""
    return any(_follows(steps, links) for steps, links in alignments(ref, place))


def alignments(ref: Ref, place: Place) -> Iterator[tuple[tuple[tuple[str, Any], ...], list[Place]]]:
    """Yield the ways to lay a written path over a place: the steps still to follow, and the links to follow them on."""
    chain = place.chain
    if ref.root == CLOSURE:
        for index, link in enumerate(chain):
            if link.role == "closure" and link.key == ref.steps[0][1]:
                yield ref.steps[1:], chain[index + 1 :]
    elif ref.root == CLASS:
        if ref.steps[1:]:
            for index, link in enumerate(chain):
                if index and ref.steps[0][1] in _class_names(link.owner):
                    yield ref.steps[1:], chain[index:]
    elif chain[0].key == ref.root:
        yield ref.steps, chain[1:]


def _class_names(obj: Any) -> Iterator[str]:
    return (kind.__name__ for kind in type.__getattribute__(type(obj), "__mro__"))


def _follows(steps: tuple[tuple[str, Any], ...], links: list[Place]) -> bool:
    if len(steps) > len(links):
        return False
    for (kind, key), link in zip(steps, links, strict=False):
        by_item = link.step.startswith("[")
        if (kind == "item") != by_item or (key is not ANY and key != link.key):
            return False
    return True
