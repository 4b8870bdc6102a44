"""A tensor that the failing line makes itself, on the host because it names no device."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.checking.expressions import live_value
from torchmagic.checking.failing_line import FailingLine, failing_lines, line_in_cell
from torchmagic.checking.failing_node import running_expression
from torchmagic.findings import Fix
from torchmagic.placement.at_failure import device_here, failing_operands, home_of
from torchmagic.placement.misplaced import Misplaced
from torchmagic.source.edits import first_words, replace_all, spelled
from torchmagic.source.transfers import is_transfer
from torchmagic.source.user_files import is_user_file

_FACTORIES = frozenset(
    {
        "zeros", "ones", "full", "empty", "rand", "randn", "randint", "randperm", "arange", "linspace", "eye", "tensor",
        "as_tensor", "from_numpy", "normal", "Tensor", "FloatTensor", "LongTensor",
    }
)  # fmt: skip
_TAKE_A_DEVICE = _FACTORIES - {"from_numpy", "Tensor", "FloatTensor", "LongTensor"}


def made_in_place(facts: Facts) -> Iterator[Misplaced]:
    """Judge the innermost failing statement when everything it names is on one accelerator."""
    if not devices.is_mismatch(facts.error) or failing_operands(facts):
        return
    for line in failing_lines(facts):
        homes = {home_of(o) for o in line.operands if home_of(o)}
        running = running_expression(facts, line.frame, line.step)
        made = [c for c in _calls(line) if not _encloses(c, running) and _makes_host_tensor(facts, line, c)]
        if len(homes) != 1 or devices.HOST in homes or not made:
            continue
        wanted = homes.pop()
        source = line.step.scope.unit.source
        path = first_words(source, made[0])
        where = device_here(facts, line, wanted)
        text = replace_all(source, line.frame.line, {call: _on_device(line, call, where) for call in made})
        yield Misplaced(
            subject=path,
            fact=f"is made on {devices.HOST}, and what this line uses it with is on {wanted}; make it there",
            objects=(),
            device=devices.HOST,
            wanted=wanted,
            line=line_in_cell(facts, line),
            level="error",
            fix=Fix(text) if text is not None and line.frame.is_cell else None,
        )
        return


def _encloses(call: ast.Call, running: ast.AST | None) -> bool:
    """Tell whether a call had not returned yet when it failed: it is what was running, or waits for it."""
    return running is not None and any(part is running for part in ast.walk(call))


def _calls(line: FailingLine) -> Iterator[ast.Call]:
    """Yield the calls whose results the statement computes with, not those inside a transfer."""
    waiting: list[ast.AST] = list(line.step.own_expressions())
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Call):
            if is_transfer(node):
                continue
            yield node
        waiting.extend(ast.iter_child_nodes(node))


def _makes_host_tensor(facts: Facts, line: FailingLine, call: ast.Call) -> bool:
    """Tell whether a call makes a tensor out of nothing on a device: torch's factories, or a function of the user's."""
    if any(keyword.arg in ("device", None) for keyword in call.keywords):
        return False
    function = live_value(facts, call.func, line.step)
    if isinstance(call.func, ast.Attribute) and call.func.attr in _FACTORIES:
        from_torch = (types.BuiltinFunctionType, types.FunctionType)
        return type(function) in from_torch and function.__module__ in (None, "torch", "torch.functional")
    return type(function) is types.FunctionType and is_user_file(function.__code__.co_filename)


def _on_device(line: FailingLine, call: ast.Call, where: str) -> str:
    text = spelled(line.step.scope.unit.source, call)
    if isinstance(call.func, ast.Attribute) and call.func.attr in _TAKE_A_DEVICE and text.endswith(")"):
        separator = "" if text.endswith("(") or not (call.args or call.keywords) else ", "
        return f"{text[:-1].rstrip().rstrip(',')}{separator}device={where})"
    return f"{text}.to({where})"
