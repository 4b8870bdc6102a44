"""The sizes of a written expression, worked out on tensors that have no memory: nothing of the user's is run."""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable
from typing import Any, Final

from torchmagic.checking import Facts
from torchmagic.checking.failing_line import FailingLine
from torchmagic.kinds import is_from_torch, kind_of_value
from torchmagic.mismatch.shape_words import Shape, shape_of
from torchmagic.namespace.resolve import MISSING, get_attribute, resolve


class _Unknown:
    """What cannot be worked out."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()

_KEEPS = frozenset(
    {
        "relu", "relu_", "sigmoid", "tanh", "exp", "log", "log1p", "sqrt", "rsqrt", "abs", "neg", "square", "softmax",
        "log_softmax", "logsigmoid", "gelu", "silu", "elu", "leaky_relu", "dropout", "float", "double", "half",
        "bfloat16", "long", "int", "bool", "to", "type", "cpu", "cuda", "detach", "clone", "contiguous", "clamp",
        "normalize", "cumsum", "round", "floor", "ceil", "sin", "cos", "triu", "tril", "flip", "roll", "zeros_like",
        "ones_like", "rand_like", "randn_like", "requires_grad_", "sign", "reciprocal", "logical_not",
    }
)  # fmt: skip
"""Methods and functions whose result has the sizes of their first operand."""

_REARRANGES = frozenset(
    {
        "t", "transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis", "reshape", "view", "flatten",
        "ravel", "unflatten", "unsqueeze", "squeeze", "expand", "repeat", "narrow", "select", "diagonal", "view_as",
        "reshape_as", "expand_as", "mean", "sum", "prod", "std", "var", "amax", "amin", "argmax", "argmin", "matmul",
        "mm", "bmm", "mv", "outer", "chunk", "split", "unbind", "cat", "stack", "size", "dim", "numel", "adjoint",
    }
)  # fmt: skip
"""Methods and functions whose result has sizes that torch works out itself."""

_TAKES_APART = frozenset({"unbind", "chunk", "split"})
_MAKES = frozenset({"randn", "rand", "zeros", "ones", "empty"})
_TURNS = frozenset({"T", "mT", "H", "mH", "data", "real"})
_KEEPING_LAYERS = frozenset(
    {"ReLU", "ReLU6", "LeakyReLU", "ELU", "GELU", "SiLU", "Sigmoid", "Tanh", "Softmax", "Dropout", "Identity"}
)
_ON_NUMBERS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv, ast.Mod: operator.mod,
}  # fmt: skip
_OWN_FRAMES = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>"})
_MOST_ELEMENTS = 256


class Sizes:
    """Works out what the expressions of a failing statement were, with the values its names had then."""

    def __init__(self, facts: Facts, line: FailingLine) -> None:
        self._facts = facts
        self._line = line
        self._hidden = set() if line.frame.function in _OWN_FRAMES else set(_bound_inside(line.step.node))

    def shape(self, node: ast.AST | None) -> Shape | None:
        """Return the sizes of an expression that is a tensor; None when they cannot be worked out."""
        value = self.value(node)
        return shape_of(value) if kind_of_value(value) == "tensor" else None

    def live(self, node: ast.AST | None) -> Any:
        """Return the object that a path names, or MISSING; a part of a tensor has no object."""
        if isinstance(node, ast.Name):
            if node.id in self._hidden:
                return MISSING
            variables = self._line.frame.variables
            return variables[node.id] if node.id in variables else self._facts.found.names.get(node.id, MISSING)
        if isinstance(node, ast.Attribute):
            holder = self.live(node.value)
            if holder is MISSING or (kind_of_value(holder) == "tensor" and node.attr != "grad"):
                return MISSING
            return get_attribute(holder, node.attr)
        if isinstance(node, ast.Subscript):
            holder = self.live(node.value)
            if holder is MISSING or kind_of_value(holder) == "tensor":
                return MISSING
            key = self.value(node.slice)
            return resolve({"holder": holder}, "holder", [("item", key)]) if type(key) in (int, str) else MISSING
        return MISSING

    def value(self, node: ast.AST | None) -> Any:
        """Return what an expression was: numbers as they are, tensors without their values; else UNKNOWN."""
        try:
            return self._value(node)
        except Exception:
            return UNKNOWN  # it would have failed there as well

    def _value(self, node: ast.AST | None) -> Any:
        if (live := self.live(node)) is not MISSING:
            return _without_values(live)
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.Tuple, ast.List)):
            return self._elements(node.elts)
        if isinstance(node, ast.Slice):
            return slice(*(None if part is None else self._known(part) for part in (node.lower, node.upper, node.step)))
        if isinstance(node, ast.UnaryOp):
            inner = self._known(node.operand)
            return -inner if isinstance(node.op, ast.USub) and type(inner) in (int, float) else inner
        if isinstance(node, ast.BinOp):
            return self._operation(node)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return _broadcast(self._known(node.left), self._known(node.comparators[0]))
        if isinstance(node, ast.Attribute):
            return self._attribute(self._known(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            return self._known(node.value)[self._known(node.slice)]
        return self._call(node) if isinstance(node, ast.Call) else UNKNOWN

    def _known(self, node: ast.AST) -> Any:
        value = self._value(node)
        if value is UNKNOWN:
            raise LookupError
        return value

    def _elements(self, nodes: list[ast.expr]) -> tuple[Any, ...]:
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values += tuple.__iter__(self._known(node.value))
            else:
                values.append(self._value(node))
        return tuple(values)

    def _operation(self, node: ast.BinOp) -> Any:
        left, right = self._known(node.left), self._known(node.right)
        if kind_of_value(left) != "tensor" and kind_of_value(right) != "tensor":
            numbers = type(left) in (int, float) and type(right) in (int, float)
            joined = type(left) is tuple and type(right) is tuple and isinstance(node.op, ast.Add)
            return _ON_NUMBERS[type(node.op)](left, right) if numbers or joined else UNKNOWN
        if isinstance(node.op, ast.MatMult):
            return sys.modules["torch"].matmul(left, right)
        return _broadcast(left, right)

    def _attribute(self, holder: Any, name: str) -> Any:
        if kind_of_value(holder) != "tensor":
            return UNKNOWN
        if name in ("shape", "ndim"):
            return tuple(holder.shape) if name == "shape" else holder.ndim
        return getattr(holder, name) if name in _TURNS else UNKNOWN

    def _call(self, node: ast.Call) -> Any:
        function, name = node.func, getattr(node.func, "attr", getattr(node.func, "id", ""))
        called = self.live(function)
        if kind_of_value(called) == "module":
            return self._layer(called, self._known(node.args[0]))
        if called is len or (called is MISSING and name == "len"):
            value = self._known(node.args[0])
            return value.shape[0] if kind_of_value(value) == "tensor" else len(value)
        owner = UNKNOWN if called is not MISSING else self._value(getattr(function, "value", None))
        if kind_of_value(owner) == "tensor":
            return self._run(node, name, getattr(type(owner), name, None), (owner,))
        return self._run(node, name, called, ()) if is_from_torch(called) else UNKNOWN

    def _run(self, node: ast.Call, name: str, function: Any, first: tuple[Any, ...]) -> Any:
        if name in _KEEPS:
            return first[0] if first else self._known(node.args[0])
        arguments = (*first, *(self._elements(node.args)))
        options = {keyword.arg: self._known(keyword.value) for keyword in node.keywords if keyword.arg is not None}
        if UNKNOWN in arguments or len(options) < len(node.keywords):
            return UNKNOWN
        if name in _MAKES and not first:
            sizes = arguments[0] if arguments and type(arguments[0]) is tuple else arguments
            return sys.modules["torch"].empty(sizes, device="meta")
        if name in _TAKES_APART and max(arguments[0].shape) > _MOST_ELEMENTS:
            return UNKNOWN
        return function(*arguments, **options) if name in _REARRANGES else UNKNOWN

    def _layer(self, layer: Any, given: Any) -> Any:
        nn = sys.modules["torch"].nn
        if type(layer) is nn.Linear and kind_of_value(given) == "tensor":
            return given.new_empty((*given.shape[:-1], layer.out_features))
        if type(layer) is nn.Flatten:
            return given.flatten(layer.start_dim, layer.end_dim)
        is_torchs = type(layer) is getattr(nn, type(layer).__name__, None)
        return given if is_torchs and type(layer).__name__ in _KEEPING_LAYERS else UNKNOWN


def _without_values(value: Any) -> Any:
    torch, kind = sys.modules["torch"], type(value)
    if kind in (int, float, bool, str, type(None), slice, type(Ellipsis)):
        return value
    if kind is torch.Size:
        return tuple(value)
    if kind in (list, tuple):
        return tuple(_without_values(part) for part in value) if len(value) <= _MOST_ELEMENTS else UNKNOWN
    if kind_of_value(value) != "tensor" or (shape := shape_of(value)) is None:
        return UNKNOWN
    try:
        return torch.empty_strided(shape, value.stride(), dtype=value.dtype, device="meta")
    except (RuntimeError, TypeError, NotImplementedError):
        return torch.empty(shape, dtype=value.dtype, device="meta")


def _broadcast(left: Any, right: Any) -> Any:
    torch = sys.modules["torch"]
    sizes = [tuple(side.shape) if kind_of_value(side) == "tensor" else () for side in (left, right)]
    return torch.empty(torch.broadcast_shapes(*sizes), device="meta")


def _bound_inside(statement: ast.stmt) -> list[str]:
    """Return the names that comprehensions of a statement bind: outside of them, another object may have the name."""
    targets = [part.target for part in ast.walk(statement) if isinstance(part, ast.comprehension)]
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
