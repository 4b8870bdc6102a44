"""uncalled-method: a method is named where its result was meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from torchmagic.calling.discarded import CONVERSIONS
from torchmagic.calling.held_methods import Held, held_methods, is_meant_as_function, writes_of_method
from torchmagic.calling.methods import Uncalled, is_mistake, uncalled
from torchmagic.calling.modes import layers_with_modes
from torchmagic.checking import Facts, Rule
from torchmagic.devices import is_built_for
from torchmagic.findings import Finding, Fix, Level
from torchmagic.kinds import kind_of_value
from torchmagic.source.edits import add_after, first_words, spelled
from torchmagic.source.scopes import is_displayed

_WITHOUT: dict[str, str] = {
    "zero_grad": "the gradients of all steps keep adding up",
    "step": "nothing is updated",
    "backward": "no gradient is computed",
    "train": "the mode stays as it was",
    "cuda": "nothing is moved",
    "cpu": "nothing is moved",
}


@dataclass(frozen=True, eq=False)
class _Mistake:
    """A method without a call: its place in the text, or the variable that holds it, or both."""

    method: Uncalled | None = None
    held: Held | None = None
    node: ast.Attribute | ast.Name | None = None
    line: int | None = None


class UncalledMethod(Rule):
    """A method is named, but the parentheses that would call it are missing.

    `loss.item` is the method itself, `loss.item()` its result. A bare `optimizer.zero_grad` or `model.eval` on a line
    does nothing and raises nothing; a method in a list of losses is found much later, and keeps its tensor alive.

    Write the parentheses: `loss.item()`.
    """

    bad = """
    import torch
    losses = []
    for step in range(3):
        loss = torch.ones(4).mean()
        losses.append(loss.item)
    """
    good = """
    import torch
    losses = []
    for step in range(3):
        loss = torch.ones(4).mean()
        losses.append(loss.item())
    """

    def subjects(self, facts: Facts) -> Iterator[_Mistake]:
        """Return what variables hold, then what the text names, each place in the text once."""
        named = list(uncalled(facts))
        known: set[ast.AST] = set()
        for held in held_methods(facts):
            written = writes_of_method(facts, held)
            known |= {node for _, node in written}
            if is_meant_as_function(facts, held, written):
                continue
            write, node = written[-1] if written else (None, _only(facts, named, held))
            if node is not None and (write is None or write.step.scope.unit.is_cell):
                known.add(node)
                yield _Mistake(held=held, node=node, line=node.end_lineno)
            else:
                yield _Mistake(held=held, line=facts.line_of(write) if write is not None else None)
        for method in named:
            if method.node not in known and is_mistake(facts, method):
                yield _Mistake(method=method, node=method.node, line=method.node.end_lineno)

    def judge(self, facts: Facts, subject: _Mistake) -> Iterator[Finding]:
        """Report what is held, or what stands in the text where its result was meant."""
        held, method = subject.held, subject.method
        if held is not None:
            path, fact, level = held.subject, _held_fact(held), _HELD_LEVEL
        elif method is not None and facts.source is not None:
            path, fact = first_words(facts.source, method.node), _text_fact(method)
            level = _text_level(facts, method)
        else:
            return
        yield Finding(
            rule=self.name(),
            level=level,
            subject=path,
            message=f"`{path}`: {fact}",
            line=subject.line,
            others=tuple(seen.subject for seen in held.methods[1:6]) if held is not None else (),
            evidence={"methods": len(held.methods)} if held is not None else {},
            fix=_fix(facts, subject),
        )


def _only(facts: Facts, named: list[Uncalled], held: Held) -> ast.Attribute | ast.Name | None:
    """Return the one place in the text that can have made what is held, when there is but one."""
    places: list[ast.Attribute | ast.Name] = [
        m.node for m in named if m.name == held.name and m.use.kind in ("store", "return", "argument")
    ]
    if not places and facts.source is not None and facts.source.tree is not None:
        nodes = list(ast.walk(facts.source.tree))
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        places = [n for n in nodes if isinstance(n, ast.Attribute) and n.attr == held.name and id(n) not in called]
    return places[0] if len(places) == 1 else None


_HELD_LEVEL: Level = "warning"


def _held_fact(held: Held) -> str:
    owner = {"tensor": "a tensor", "module": "a module", "optimizer": "an optimizer"}.get(held.kind, f"a {held.kind}")
    alive = "; each keeps its tensor and the graph behind it alive" if held.kind == "tensor" else ""
    what = f"the method `{held.name}` of {owner}, not its result"
    count = len(held.methods)
    if held.container is not None and count > 1:
        return f"{count} elements are {what}{alive}; call it: `.{held.name}()`"
    return f"this is {what}; call it: `.{held.name}()`"


def _text_fact(method: Uncalled) -> str:
    call = f"`{method.name}()`" if method.needs_no_argument else f"`{method.name}(...)`"
    if method.use.kind == "statement":
        cost = _without_eval(method) if method.name == "eval" else _WITHOUT.get(method.name)
        return f"named but not called, so {cost or 'nothing happens here'}; write {call}"
    if method.use.kind == "with":
        return f"`with` is given the class or method itself; write {call}"
    if method.use.kind == "truth":
        return f"the method itself is tested here, and it is always true; write {call}"
    return f"the method itself stands where its result is meant; write {call}"


def _without_eval(method: Uncalled) -> str:
    """Say what stays in training mode: what a live model has of the layers that know one."""
    model = getattr(method.value, "__self__", None)
    if kind_of_value(model) != "module":
        return "the model stays in the mode it is in"
    layers = layers_with_modes(model)
    if not layers:
        return "the mode stays as it was"
    return f"{' and '.join(layers)} {'stay' if len(layers) > 1 else 'stays'} in training mode"


def _text_level(facts: Facts, method: Uncalled) -> Level:
    """A line that ended the cell is an error; a last line that may be there to be looked at is a note."""
    first, last = method.step.line, method.step.node.end_lineno or method.step.line
    if any(frame.is_cell and first <= frame.line <= last for frame in facts.failed_frames):
        return "error"
    shown = method.use.kind == "statement" and not method.is_action and is_displayed(method.step)
    return "note" if shown else "warning"


def _fix(facts: Facts, subject: _Mistake) -> Fix | None:
    """Add the parentheses, to every method on the line that lacks them for the same reason."""
    if facts.source is None or subject.line is None or subject.node is None:
        return None
    if subject.method is not None and not subject.method.needs_no_argument:
        return None
    if getattr(subject.node, "attr", "") == "cuda" and not is_built_for("cuda"):
        return None  # the right line would fail here
    same_line = [
        method.node
        for method in uncalled(facts)
        if method.node.end_lineno == subject.line and method.needs_no_argument and is_mistake(facts, method)
    ]
    text = add_after(facts.source, subject.line, [(node, "()") for node in [subject.node, *same_line]])
    is_lost = subject.method is not None and _is_lost_conversion(subject.method)
    if text is not None and is_lost and isinstance(subject.node, ast.Attribute):
        text = f"{spelled(facts.source, subject.node.value)} = {text}"
    return Fix(text) if text is not None else None


def _is_lost_conversion(method: Uncalled) -> bool:
    """Tell whether the call alone would still be lost: a tensor's conversion that begins a line."""
    starts = method.step.scope.unit.source.line(method.step.line).lstrip().startswith(ast.unparse(method.node))
    return method.use.kind == "statement" and method.kind == "tensor" and method.name in CONVERSIONS and starts
