"""The order of things: when a holder got its memory, what changed the memory after that, and who read it then."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from torchmagic.checking import Facts
from torchmagic.namespace import Seen
from torchmagic.sharing.changes import Change, changes_of
from torchmagic.sharing.holders import Capture, Holder, covers, element_expression, entry_of, is_empty, is_kept
from torchmagic.sharing.whole_program import WholeProgram
from torchmagic.source import Context, Ref, Step, Write, ref_of
from torchmagic.source.memory_paths import last_bind, memory_paths, memory_ref, returns_of
from torchmagic.source.order import may_follow, shared_loops
from torchmagic.source.writes import is_inplace_name, writes_of

_MOST_CALLS = 4
CONSTRUCTORS = frozenset({"__init__", "__post_init__"})


class Timeline:
    """What the program's text tells about the memory that the live objects share."""

    def __init__(self, facts: Facts, program: WholeProgram) -> None:
        self.facts = facts
        self.program = program
        self._captures: dict[str, Capture | None] = {}

    @cached_property
    def changes(self) -> list[Change]:
        """Every change that the program makes."""
        return changes_of(self.facts, self.program)

    def changes_to(self, group: list[Seen], holders: list[Holder]) -> list[Change]:
        """Return the changes that touch a group; an optimizer's count only when a version counter moved."""
        moved = any(seen.kind == "tensor" and self.facts.version_moved(seen.obj) for seen in group)
        return [
            change
            for change in self.changes
            if (moved or change.kind == "write") and any(change.touches(holder) for holder in holders)
        ]

    @cached_property
    def _stores(self) -> list[tuple[Write, list[Ref]]]:
        return [
            (write, self.program.spellings(write.target, write.step.scope))
            for write in self.program.writes
            if write.kind in ("bind", "store") and write.value is not None and not _is_local(write)
        ]

    @cached_property
    def loop_variables(self) -> set[str]:
        """The variables that a loop of the cell bound last: they go through data and hold nothing for themselves."""
        last = {
            write.target.root: write.how for write, _ in self._stores if write.kind == "bind" and not write.target.steps
        }
        return {name for name, how in last.items() if how == "for"}

    def capture_of(self, holder: Holder) -> Capture | None:
        """Return the statement of the cell that gave a holder its memory, or None when an earlier cell did."""
        key = holder.text
        if key not in self._captures:
            found = self._find_capture(holder)
            self._captures[key] = None if found is None else self._inside(found, holder)
        return self._captures[key]

    def _inside(self, capture: Capture, holder: Holder) -> Capture:
        """Follow a capture into the functions that it calls, to the statement that first held the memory there."""
        write = capture.write
        step, value, position = write.step, write.value, write.position
        for _ in range(_MOST_CALLS):
            following = self._result_of(value, position, holder)
            if following is None:
                break
            step, value, position = following
            inner = [c for c in self.program.contexts(step, element_expression(value)) if write.step in c.steps]
            if inner:
                made = Write("bind", write.target, value, step, step.node, position=position)
                capture = Capture(made, tuple(inner), capture.kept or is_kept(made), given=write)
        return capture

    def _result_of(
        self, value: ast.expr | None, position: int | None, holder: Holder
    ) -> tuple[Step, ast.expr | None, int | None] | None:
        """Return the statement in a called function that gave the function's result its memory."""
        value = element_expression(value) or value
        returned = list(returns_of(self.program, value))[-1:] if isinstance(value, ast.Call) else ()
        for result, at in returned:
            part: ast.expr | None = result
            if isinstance(result, ast.Tuple) and position is not None and position < len(result.elts):
                part, position = result.elts[position], None
            part = entry_of(part, holder)
            if not isinstance(part, ast.Name):
                return at, part, position
            owner = at.scope.owner_of(part.id)
            bound = None if isinstance(owner.node, ast.Module) else last_bind(self.program, part.id, owner, at)
            if bound is not None and bound.how in ("=", ":="):
                return bound.step, bound.value, bound.position
        return None

    def _find_capture(self, holder: Holder) -> Capture | None:
        least: int | None = None
        nearest: list[Write] = []
        for write, refs in self._stores:
            beyond = min((b for ref in refs if (b := covers(ref, holder.place)) is not None), default=None)
            if beyond is None or (write.kind == "bind" and beyond and is_empty(write.value)):
                continue  # it came into an empty container later
            if write.kind == "store" and not (beyond and _is_stored_under(write, refs, holder)):
                continue  # a write into the tensor itself, or of another entry
            if write.step.scope.name in CONSTRUCTORS and not self._constructs(write.step, holder):
                continue  # it made another object of the class
            if least is None or beyond <= least:
                nearest = [*nearest, write] if beyond == least else [write]
                least = beyond
        if not nearest:
            return None
        write = self._effective([w for w in nearest if self.program.contexts(w.step)] or nearest)
        contexts = self.program.contexts(write.step, element_expression(write.value))
        through = [c for c in contexts if any(_binds(step, holder.place.root) for step in c.steps)]
        return Capture(write, tuple(through or contexts), is_kept(write))

    def _effective(self, nearest: list[Write]) -> Write:
        """Return the last of the writes that lead equally near; a call is known by the store it runs."""
        last = max(nearest, key=self._last_run)
        for write in nearest:
            if write.kind == "store" and any(last.step in c.steps for c in self.program.contexts(write.step)):
                return write
        return last

    def _last_run(self, write: Write) -> tuple[float, ...]:
        """Return what puts statements in the order in which they run last, those inside calls where the calls stand."""
        runs = [tuple(step.order for step in context.steps) for context in self.program.contexts(write.step)]
        return max(runs, default=())

    def _constructs(self, step: Step, holder: Holder) -> bool:
        """Tell whether a constructor's statement ran for the object that a holder's variable leads to."""
        root = holder.place.root
        bound_here = any(write.kind == "bind" and write.target == Ref(root) for write, _ in self._stores)
        contexts = self.program.contexts(step)
        return not bound_here or any(_binds(outer, root) for context in contexts for outer in context.steps)

    def follows(self, change: Change, capture: Capture | None, *, kept: bool = False) -> bool:
        """Tell whether a change comes after a capture; what an earlier cell captured comes before every change.

        With `kept`, what was captured in one pass of a loop is still there in the next.
        """
        if capture is None:
            return True
        if change.step is capture.step and capture.write.how == ":=":
            return True  # a value is worked out before it is written
        return any(may_follow(later, earlier, kept=kept) for later in change.contexts for earlier in capture.contexts)

    def precedes(self, change: Change, capture: Capture | None) -> bool:
        """Tell whether a change was over before a holder got the memory, and does not come again."""
        if capture is None or self.follows(change, capture):
            return False
        inside = any(capture.outer in context.steps for context in change.contexts)
        return not inside and any(may_follow(b, a) for b in capture.contexts for a in change.contexts)

    def is_newer(self, one: Holder, other: Holder) -> bool:
        """Tell whether a holder got the memory from, or after, the other one."""
        first, second = self.capture_of(one), self.capture_of(other)
        if first is None or second is None:
            return second is None and first is not None
        if first.contexts == second.contexts:
            return False
        return not any(may_follow(b, a) for a in first.contexts for b in second.contexts)

    def reads_after(self, holder: Holder, changes: list[Change]) -> list[Step]:
        """Return the statements that read a holder's variable or attribute after one of these changes."""
        capture = self.capture_of(holder)
        return [
            step
            for step in self.reads(holder)
            if any(
                may_follow(reading, changing, kept=self.in_one_loop(change, step, capture))
                for reading in self.program.contexts(step)
                for change in changes
                if change.step is not step
                for changing in change.contexts
            )
        ]

    def reads(self, holder: Holder) -> list[Step]:
        """Return all statements that read a holder's variable or attribute, but for its own capture."""
        capture = self.capture_of(holder)
        return [step for step in self._mentions[_spoken_name(holder)] if capture is None or step is not capture.step]

    def mentions(self, step: Step, name: str) -> bool:
        """Tell whether a statement reads a variable or attribute of this name."""
        return step in self._mentions[name]

    @cached_property
    def _mentions(self) -> dict[str, list[Step]]:
        table: dict[str, list[Step]] = defaultdict(list)
        for step in self.program.steps:
            names = {
                node.id if isinstance(node, ast.Name) else node.attr
                for node in step.nodes
                if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
            }
            behind = self.program.property_sources
            names |= {steps[0][1] for name in names & behind.keys() for steps in behind[name]}
            if not isinstance(step.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                for name in names:
                    table[name].append(step)
        return table

    def in_one_loop(self, change: Change, step: Step, capture: Capture | None) -> bool:
        """Tell whether a loop that the capture is not in runs both a change and a reading: a buffer filled and used."""
        outer = capture.contexts if capture is not None else (Context((), ()),)
        return any(
            shared_loops(a, b) > max((shared_loops(a, c) for c in outer), default=0)
            for a in change.contexts
            for b in self.program.contexts(step)
        )

    def maker(self, capture: Capture) -> tuple[Step, ast.expr | None]:
        """Return the statement in which the memory comes to be shared, and the value in it.

        From a capture that way leads into the functions it calls, and out of a constructor that stores its argument.
        """
        step, value = capture.step, capture.write.value
        if isinstance(element := element_expression(value), ast.Call) and list(returns_of(self.program, element)):
            value = element
        if isinstance(value, ast.Name) and value.id in step.scope.parameters and capture.contexts:
            callers = [outer for outer in capture.contexts[0].steps[:-1] if outer.scope.unit.is_cell]
            if callers:
                step, value = callers[-1], _value_of(callers[-1])
        for _ in range(4):
            while (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Attribute)
                and is_inplace_name(value.func.attr)
            ):
                value = value.func.value
            following = self._made_by(step, value)
            if following is None or not following[0].scope.unit.is_cell:
                break
            step, value = following
        return step, value

    def _made_by(self, step: Step, value: ast.expr | None) -> tuple[Step, ast.expr | None] | None:
        if isinstance(value, ast.Call):
            returned = list(returns_of(self.program, value))
            return (returned[-1][1], returned[-1][0]) if returned else None
        if isinstance(value, ast.Name) and not isinstance(step.scope.owner_of(value.id).node, ast.Module):
            bound = last_bind(self.program, value.id, step.scope.owner_of(value.id), step)
            if bound is not None and bound.position is None and bound.how == "=":
                return bound.step, bound.value
        return None

    def is_alias(self, capture: Capture) -> Ref | None:
        """Return the path that a capture merely gives another name to: `backup = weights`."""
        write = capture.write
        return (
            ref_of(write.value)
            if write.kind == "bind" and write.how in ("=", ":=") and write.position is None
            else None
        )

    def source_of(self, capture: Capture) -> Ref | None:
        """Return the path whose memory a capture takes, also through a view or a conversion."""
        return memory_ref(capture.write.value)

    def is_module(self, method: ast.Attribute, step: Step) -> bool:
        """Tell whether a method is that of a live module."""
        ref = ref_of(method.value)
        paths = memory_paths(self.program, ref, step) if ref is not None else []
        modules = self.facts.found.of_kind("module")
        return any(covers(path, place) == 0 for seen in modules for place in seen.places for path in paths)

    def line_of(self, step: Step) -> int | None:
        """Return the cell's line of a statement, or of the call that leads to it."""
        if step.scope.unit.is_cell:
            return step.line
        return next((c.line for c in self.program.contexts(step) if c.line is not None), None)


def _is_local(write: Write) -> bool:
    """Tell whether a binding gives a function's own variable a value, which holds nothing once the function is left."""
    owner = write.step.scope.owner_of(write.target.root)
    local = write.kind == "bind" and not write.target.steps and not isinstance(owner.node, ast.Module)
    return local and owner is write.step.scope


def _is_stored_under(write: Write, refs: list[Ref], holder: Holder) -> bool:
    """Tell whether a store may have put in what a holder holds: by a method, or under the holder's own key."""
    if write.key is None:
        return True
    item = ref_of(ast.Subscript(ast.Name("_"), write.key))
    return item is None or any(covers(ref + item.steps, holder.place) is not None for ref in refs)


def _value_of(step: Step) -> ast.expr | None:
    value = getattr(step.node, "value", None)
    return value if isinstance(value, ast.expr) else None


def _binds(step: Step, name: str) -> bool:
    return any(write.kind == "bind" and write.target == Ref(name) for write in writes_of(step))


def _spoken_name(holder: Holder) -> str:
    """Return the variable or attribute by which the text speaks of a holder."""
    named: Iterator[str] = (
        str(link.key) for link in reversed(holder.place.chain) if link.role in ("attribute", "name", "closure")
    )
    return next(named, holder.place.root)
