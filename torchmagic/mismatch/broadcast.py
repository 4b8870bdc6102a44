"""Elementwise operations, `a + b`: sizes are compared from the last dimension, and two of them differ."""

from __future__ import annotations

import ast
import re
from typing import Any

from torchmagic.findings import Fix
from torchmagic.kinds import name_of
from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import Shape, listed

_SPEAKS = re.compile(
    r"must match the size of tensor b|broadcast a dimension of length|doesn't match the broadcast shape"
    r"|[Ss]hape mismatch: objects cannot be broadcast|The expanded size of the tensor|shape mismatch: value tensor"
)
_GROWS = re.compile(r"output with shape .* doesn't match the broadcast shape")
_FUNCTIONS = frozenset(
    {
        "add", "sub", "mul", "div", "true_divide", "pow", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge",
        "add_", "sub_", "mul_", "div_", "copy_", "multiply", "divide", "subtract", "fmod", "remainder", "atan2",
        "logical_and", "logical_or", "dist", "cosine_similarity", "masked_fill", "masked_fill_",
    }
)  # fmt: skip


def broadcast(failure: Refusal) -> Explained | None:
    """Explain an elementwise operation between sizes that do not go together."""
    if failure.calls or not _SPEAKS.search(failure.text):
        return None
    found = [explained for node in failure.expressions if (explained := _explain(failure, node)) is not None]
    return found[0] if len(found) == 1 else None


def disagreement(left: Shape, right: Shape) -> int | None:
    """Return the dimension, counted in the longer shape, in which two shapes do not go together; the last of them."""
    longest = max(len(left), len(right))
    for back in range(1, min(len(left), len(right)) + 1):
        if left[-back] != right[-back] and 1 not in (left[-back], right[-back]):
            return longest - back
    return None


def _explain(failure: Refusal, node: ast.AST) -> Explained | None:
    if isinstance(node, ast.Subscript):
        return _stored(failure, node)
    sides = _operands(failure, node)
    if sides is None:
        return None
    left, right = failure.part_of_node(sides[0]), failure.part_of_node(sides[1])
    if left is None or right is None:
        return _with_message(failure, left, right)
    return _compared(failure, left, right, augmented=node if isinstance(node, ast.AugAssign) else None)


def _stored(failure: Refusal, node: ast.Subscript) -> Explained | None:
    """Explain `x[0] = y` where `y` is no size of that place."""
    statement = failure.here.step.node
    if not isinstance(statement, ast.Assign) or node not in statement.targets:
        return None
    place, value = failure.part_of_node(node), failure.part_of_node(statement.value)
    if place is None or value is None:
        return None
    fact = f"{place.text} is {listed(place.shape)}, and {value.text}, which is put there, {listed(value.shape)}"
    return failure.explained(failure.first_named(place, value), fact)


def _compared(failure: Refusal, left: Part, right: Part, *, augmented: ast.AugAssign | None) -> Explained | None:
    dim = disagreement(left.shape, right.shape)
    fact = f"{left.text} is {listed(left.shape)} and {right.text} {listed(right.shape)}"
    about = failure.first_named(left, right)
    if dim is None:
        if augmented is None or not _GROWS.search(failure.text):
            return None
        written = f"{ast.unparse(augmented.target)} = {ast.unparse(_not_in_place(augmented))}"
        return failure.explained(
            about, f"{fact}: the result is larger than {left.short}, which cannot grow: `{written}`"
        )
    longest = max(len(left.shape), len(right.shape))
    back = longest - dim
    if len(left.shape) == len(right.shape):
        fact += f": dimension {dim} must be the same, or 1 in one of them"
    else:
        ends = f"{left.shape[-back]} against {right.shape[-back]}"
        which = "the last" if back == 1 else f"dimension -{back}"
        fact += f": sizes are compared from the last dimension on, and {which} is {ends}"
    shorter, longer = (left, right) if len(left.shape) < len(right.shape) else (right, left)
    call = _spread(shorter.shape, longer.shape)
    if call:
        text = failure.with_call(shorter, call)
        fact += f"; `{text}` goes along dimension {_run_at(shorter.shape, longer.shape)}"
        caveat = f"Check that {shorter.text} is meant to go along dimension {_run_at(shorter.shape, longer.shape)}."
        changes_target = augmented is not None and shorter is left
        fix: Fix | None = None if changes_target else failure.call_fix(shorter, call, caveat)
        return failure.explained(about, fact, fix)
    if len(left.shape) == len(right.shape) == 2 and left.shape == right.shape[::-1]:
        fact += f"; one is the other's transpose: `{failure.with_call(right, '.T')}`"
    return failure.explained(about, fact)


def _not_in_place(statement: ast.AugAssign) -> ast.BinOp:
    """Return the operation of `x += y` as an expression."""
    target: Any = statement.target
    return ast.BinOp(left=target, op=statement.op, right=statement.value)


def _run_at(shorter: Shape, longer: Shape) -> int:
    """Return where the sizes of the shorter shape stand in the longer one."""
    return next(at for at in range(len(longer)) if longer[at : at + len(shorter)] == shorter)


def _spread(shorter: Shape, longer: Shape) -> str:
    """Return the subscript that puts the shorter shape where alone its sizes stand in the longer one."""
    width = len(shorter)
    places = [at for at in range(len(longer) - width + 1) if longer[at : at + width] == shorter]
    if len(places) != 1 or not width or 1 in shorter:
        return ""
    behind = len(longer) - places[0] - width
    return f"[{', '.join([':'] * width + ['None'] * behind)}]" if behind else ""


def _with_message(failure: Refusal, left: Part | None, right: Part | None) -> Explained | None:
    """Explain with the sizes that torch tells, where the text shows only one side."""
    said = re.search(r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at .*dimension (\d+)", failure.text)
    known = left if left is not None else right
    if said is None or known is None or not known.path:
        return None
    ours, theirs = (
        (int(said.group(1)), int(said.group(2))) if known is left else (int(said.group(2)), int(said.group(1)))
    )
    if ours not in known.shape:
        return None
    fact = f"{known.text} is {listed(known.shape)}: against its {ours}, the other side has {theirs}"
    return failure.explained(known, f"{fact}; they must be the same, or 1 in one of them")


def _operands(failure: Refusal, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        return node.left, node.right
    if isinstance(node, ast.AugAssign) and not isinstance(node.op, ast.MatMult):
        return node.target, node.value
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return node.left, node.comparators[0]
    if not isinstance(node, ast.Call):
        return None
    name = name_of(failure.sizes.live(node.func))
    if name in _FUNCTIONS and len(node.args) >= 2:
        return node.args[0], node.args[1]
    if name == "where" and len(node.args) == 3:
        return _unlike(failure, node.args)
    method = node.func if isinstance(node.func, ast.Attribute) else None
    return (method.value, node.args[0]) if method is not None and method.attr in _FUNCTIONS and node.args else None


def _unlike(failure: Refusal, nodes: list[ast.expr]) -> tuple[ast.expr, ast.expr] | None:
    """Return the first two operands that do not go together."""
    shapes = [failure.sizes.shape(node) for node in nodes]
    for one in range(len(nodes)):
        for two in range(one + 1, len(nodes)):
            left, right = shapes[one], shapes[two]
            if left is not None and right is not None and disagreement(left, right) is not None:
                return nodes[one], nodes[two]
    return None
