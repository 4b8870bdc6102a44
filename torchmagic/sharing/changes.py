"""Every statement that changes memory: writes in place, an optimizer's step, a backward pass into gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from torchmagic.checking import Facts
from torchmagic.checking.facts import alignments
from torchmagic.namespace import Seen
from torchmagic.sharing.holders import Holder, reaches
from torchmagic.source import Context, Program, Ref, Step, Write, ref_of
from torchmagic.source.memory_paths import ALL, last_bind, memory_paths, memory_ref
from torchmagic.source.writes import is_inplace_name

ChangeKind = Literal["write", "training", "backward"]

_FILLS = frozenset(
    {"zero_", "fill_", "copy_", "fill", "normal_", "uniform_", "random_", "bernoulli_", "out=", "np.copyto"}
)
_SHUFFLES = frozenset({"shuffle"})


@dataclass(frozen=True, eq=False)
class Change:
    """A statement that changes memory, and the top-level paths by which it names that memory.

    `node` is the statement, or the call in it, that does it. `trained` are the identities of the tensors an optimizer
    steps or a backward pass adds to. `fills` is set when the old values do not matter to it. `target` is what the
    statement itself calls the memory.
    """

    kind: ChangeKind
    step: Step
    node: ast.AST
    line: int | None
    contexts: tuple[Context, ...]
    paths: tuple[Ref, ...]
    target: Ref | None = None
    trained: frozenset[int] = field(default_factory=frozenset)
    fills: bool = False

    def names(self, holder: Holder) -> bool:
        """Tell whether the statement reaches the memory by the holder's own path."""
        return any(reaches(ref, holder.place) for ref in self.paths)

    def touches(self, holder: Holder) -> bool:
        """Tell whether the statement changes what the holder holds, under this or another name of the same object."""
        if id(holder.seen.obj) in self.trained or self.names(holder):
            return True
        return any(reaches(ref, place) for ref in self.paths for place in holder.others)


def changes_of(facts: Facts, program: Program) -> list[Change]:
    """Return the changes that the program makes, in the order of the text."""
    found = [*_writes(program), *_trainings(facts, program), *_backwards(facts, program)]
    return sorted((change for change in found if change.contexts), key=lambda change: change.step.order)


def _writes(program: Program) -> Iterator[Change]:
    for write in program.writes:
        if write.kind in ("inplace", "augment") or (write.kind == "store" and write.how == "[]="):
            fills = write.how in _FILLS or (write.kind == "inplace" and write.node is not None and _is_init(write))
            yield _change(program, write.target, write.step, write.node, fills=fills)
    for step in program.steps:
        for target, node in _hidden_targets(step):
            yield _change(program, target, step, node, fills=False)


def _change(program: Program, target: Ref, step: Step, node: ast.AST, *, fills: bool) -> Change:
    paths = tuple(memory_paths(program, target, step))
    return Change(
        "write", step, node, _line(program, step, node), tuple(_ways_to(program, step)), paths, target, fills=fills
    )


def _ways_to(program: Program, step: Step) -> Iterator[Context]:
    """Yield how a statement is reached; what the condition of `while` does is done in each pass."""
    for context in program.contexts(step):
        yield replace(context, loops=(*context.loops, step.node)) if isinstance(step.node, ast.While) else context


def _is_init(write: Write) -> bool:
    """Tell whether a write is one of `torch.nn.init`, which give a tensor its first values."""
    function = write.node.func if isinstance(write.node, ast.Call) else None
    module = ref_of(function.value) if isinstance(function, ast.Attribute) else None
    return module is not None and module.last_name == "init"


def _hidden_targets(step: Step) -> Iterator[tuple[Ref, ast.AST]]:
    """Find writes through a view: `x.view(-1)[0] = 1`, `x[0].detach().mul_(2)`, and shuffles of an array."""
    for target in _assigned(step.node):
        if isinstance(target, ast.Subscript) and ref_of(target) is None and (ref := memory_ref(target)) is not None:
            yield ref, step.node
    for node in step.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if is_inplace_name(node.func.attr) and ref_of(node.func.value) is None:
            if (ref := memory_ref(node.func.value)) is not None:
                yield ref, node
        elif node.func.attr in _SHUFFLES and node.args and (ref := memory_ref(node.args[0])) is not None:
            yield ref, node


def _assigned(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AugAssign) else []


def _trainings(facts: Facts, program: Program) -> Iterator[Change]:
    for call, step in program.calls_of("step"):
        function = call.func
        if not isinstance(function, ast.Attribute):
            continue
        for node in (function.value, *call.args[:1]):
            if (ref := ref_of(node)) is None:
                continue
            known = memory_paths(program, ref, step)
            trained = {tensor for seen in _optimizers(facts, known) for tensor in _stepped(seen.obj)}
            paths = list(_optimized(program, ref, step))
            if trained or paths:
                contexts = tuple(program.contexts(step))
                line = _line(program, step, call)
                yield Change("training", step, call, line, contexts, tuple(paths), ref, frozenset(trained))
                break


def _optimizers(facts: Facts, paths: list[Ref]) -> Iterator[Seen]:
    for seen in facts.found.of_kind("optimizer"):
        if any(_is_path_of(ref, seen) for ref in paths):
            yield seen


def _is_path_of(ref: Ref, seen: Seen) -> bool:
    return any(
        len(steps) == len(links) and reaches(ref, place)
        for place in seen.places
        for steps, links in alignments(ref, place)
    )


def _stepped(optimizer: Any) -> Iterator[int]:
    """Yield the identities of an optimizer's parameters and of the tensors of their state."""
    attributes = object.__getattribute__(optimizer, "__dict__")
    for group in attributes.get("param_groups") or ():
        yield from map(id, group["params"])
    state = attributes.get("state")
    for values in list(dict.values(state)) if issubclass(type(state), dict) else ():
        if issubclass(type(values), dict):
            yield from map(id, dict.values(values))


def _optimized(program: Program, ref: Ref, step: Step) -> Iterator[Ref]:
    """Yield what the text says an optimizer was made for: `SGD(net.parameters())`, `Adam([x])`."""
    bound = last_bind(program, ref.root, step.scope.owner_of(ref.root), step) if not ref.steps else None
    call = bound.value if bound is not None else None
    if bound is None or not isinstance(call, ast.Call) or not call.args:
        return
    first = call.args[0]
    method = first.func if isinstance(first, ast.Call) else None
    module = memory_ref(method.value) if isinstance(method, ast.Attribute) and method.attr == "parameters" else None
    if module is not None:
        every = Ref(module.root, (*module.steps, (ALL, "parameters")))
        yield from memory_paths(program, every, bound.step)
    for element in first.elts if isinstance(first, (ast.List, ast.Tuple)) else ():
        if (tensor := memory_ref(element)) is not None:
            yield from memory_paths(program, tensor, bound.step)


def _backwards(facts: Facts, program: Program) -> Iterator[Change]:
    gradients = frozenset(
        id(seen.obj) for seen in facts.found.of_kind("tensor") if any(place.role == "grad" for place in seen.places)
    )
    if not gradients:
        return
    for call, step in program.calls_of("backward"):
        contexts = tuple(program.contexts(step))
        yield Change("backward", step, call, _line(program, step, call), contexts, (), None, gradients)


def _line(program: Program, step: Step, node: ast.AST) -> int | None:
    """Return the cell's line of a statement: its own, or that of the cell's call that leads to it."""
    if step.scope.unit.is_cell:
        return int(getattr(node, "lineno", step.line))
    return next((context.line for context in program.contexts(step) if context.line is not None), None)
