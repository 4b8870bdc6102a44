"""Matrix products: the dimension that is summed over has two sizes, or the batches differ."""

from __future__ import annotations

import ast
import re
from math import prod

from torchmagic.kinds import name_of
from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import Shape, listed

_FUNCTIONS = frozenset({"matmul", "mm", "bmm", "mv", "dot"})
_SPEAKS = re.compile(
    r"cannot be multiplied|same reduction dim|size mismatch|Expected size for first two dimensions|must be a matrix"
    r"|inconsistent tensor size|batch[12] must be a 3D tensor|must match the size of tensor b|to be at least 1D"
    r"|same number of elements|1D tensors expected|must be a vector|vector \+ matrix|[Bb]roadcast"
)


def matmul(failure: Refusal) -> Explained | None:
    """Explain a product of matrices whose sizes do not fit together."""
    if failure.calls or not _SPEAKS.search(failure.text):
        return None
    found = [explained for node in failure.expressions if (explained := _explain(failure, node)) is not None]
    return found[0] if len(found) == 1 else None


def _explain(failure: Refusal, node: ast.AST) -> Explained | None:
    sides = _operands(failure, node)
    if sides is None:
        return None
    left, right = (failure.part_of_node(side) for side in sides[:2])
    if left is None or right is None:
        return _from_message(failure, left, right)
    if sides[2] in ("mm", "bmm") and len(left.shape) == len(right.shape) != (2 if sides[2] == "mm" else 3):
        return _other_function(failure, left, right, sides[2], node)
    if not left.shape or not right.shape:
        part, what = (right, left) if not right.shape else (left, right)
        return failure.explained(part, f"{part.text} is a single number: multiply {what.text} by it with `*`")
    return _contraction(failure, left, right) or _batches(failure, left, right)


def _operands(failure: Refusal, node: ast.AST) -> tuple[ast.expr, ast.expr, str] | None:
    """Return the two sides of a matrix product and how it is spelled."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right, "@"
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.MatMult):
        return node.target, node.value, "@"
    if not isinstance(node, ast.Call):
        return None
    name = name_of(failure.sizes.live(node.func))
    if name in _FUNCTIONS and len(node.args) == 2:
        return node.args[0], node.args[1], name
    if name == "addmm" and len(node.args) == 3:
        return node.args[1], node.args[2], "@"
    method = node.func if isinstance(node.func, ast.Attribute) else None
    if method is not None and method.attr in _FUNCTIONS and len(node.args) == 1:
        return method.value, node.args[0], method.attr
    return None


def _contraction(failure: Refusal, left: Part, right: Part) -> Explained | None:
    """Explain a product whose summed dimensions differ."""
    row = len(right.shape) - (2 if len(right.shape) > 1 else 1)
    if left.shape[-1] == right.shape[row]:
        return None
    last = len(left.shape) - 1
    fact = (
        f"{left.text} is {listed(left.shape)} and {right.text} {listed(right.shape)}: dimension {last} of "
        f"{left.short} ({left.shape[-1]}) must be as large as dimension {row} of {right.short} ({right.shape[row]})"
    )
    about = failure.first_named(left, right)
    turned = [
        part
        for part in (left, right)
        if len(part.shape) > 1 and _fits(*(_turned(p.shape) if p is part else p.shape for p in (left, right)))
    ]
    if not turned and len(left.shape) > 2 and prod(left.shape[1:]) == right.shape[row]:
        text = failure.with_call(left, ".flatten(1)")
        return failure.explained(about, f"{fact}; `{text}` fits", failure.fix(left.node, text))
    swaps = _fits(right.shape, left.shape) and len(left.shape) > 1 and len(right.shape) > 1
    if left.shape == right.shape:
        fact += "; `*` multiplies element by element"
    if len(turned) == 1 and not swaps:
        part = turned[0]
        text = turned_text(failure, part)
        caveat = "Check that this is the product of matrices you mean."
        return failure.explained(about, f"{fact}; `{text}` fits", failure.fix(part.node, text, caveat))
    if turned and not swaps:
        texts = " or ".join(f"`{turned_text(failure, part)}`" for part in turned)
        return failure.explained(about, f"{fact}; turn one of them: {texts}")
    if swaps and not turned:
        fact += "; they fit the other way round"
    return failure.explained(about, fact)


def _batches(failure: Refusal, left: Part, right: Part) -> Explained | None:
    """Explain a product of batches of matrices whose batches do not go together."""
    ours, theirs = left.shape[:-2], right.shape[:-2]
    for back in range(1, min(len(ours), len(theirs)) + 1):
        one, two = ours[-back], theirs[-back]
        if one != two and 1 not in (one, two):
            one_dim = f"dimension {len(ours) - back} of {left.short} ({one})"
            dims = f"{one_dim} and {len(theirs) - back} of {right.short} ({two})"
            fact = f"{left.text} is {listed(left.shape)} and {right.text} {listed(right.shape)}: {dims}"
            return failure.explained(failure.first_named(left, right), f"{fact} count matrices, and must be the same")
    return None


def _other_function(failure: Refusal, left: Part, right: Part, name: str, node: ast.AST) -> Explained | None:
    takes = "two matrices" if name == "mm" else "two batches of matrices, of 3 dimensions each"
    fact = f"`{name}` takes {takes}; {left.text} is {listed(left.shape)} and {right.text} {listed(right.shape)}"
    if not _fits(left.shape, right.shape):
        return failure.explained(left, fact)
    text = f"{failure.with_call(left, '')} @ {failure.with_call(right, '')}"
    return failure.explained(left, f"{fact}: `{text}` multiplies both kinds", failure.fix(node, text))


def _from_message(failure: Refusal, left: Part | None, right: Part | None) -> Explained | None:
    """Explain a product with the sizes that torch tells, where the text shows only one side or none."""
    found = re.search(r"\((\d+)x(\d+) and (\d+)x(\d+)\)", failure.text)
    known = left if left is not None else right
    if found is None or known is None or len(known.shape) != 2:
        return None
    rows, inner, other, columns = (int(size) for size in found.groups())
    if known.shape != ((rows, inner) if known is left else (other, columns)):
        return None
    sizes = f"the other side is {[other, columns] if known is left else [rows, inner]}"
    fact = f"{known.text} is {listed(known.shape)} and {sizes}: the columns of the left one ({inner}) must be as many"
    return failure.explained(known, f"{fact} as the rows of the right one ({other})")


def _turned(shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2])


def turned_text(failure: Refusal, part: Part) -> str:
    """Write the transpose of a matrix, or of each in a batch; of one that is written as a transpose, the original."""
    node = part.node
    inner = node.value if isinstance(node, ast.Attribute) and node.attr in ("T", "mT") else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("t", "transpose"):
        inner = node.func.value
    original = failure.part_of_node(inner)
    if original is not None and original.shape == _turned(part.shape):
        return failure.with_call(original, "")
    return failure.with_call(part, ".T" if len(part.shape) == 2 else ".mT")


def _fits(left: Shape, right: Shape) -> bool:
    """Tell whether two shapes can be multiplied as matrices."""
    inner = right[-2] if len(right) > 1 else right[-1]
    if left[-1] != inner:
        return False
    pairs = zip(reversed(left[:-2]), reversed(right[:-2]), strict=False)
    return all(one == two or 1 in (one, two) for one, two in pairs)
