"""What the operations of an expression do to NaN and infinity: make, mix, mark, hand on."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterator

_MIXES = frozenset(
    {
        "mean", "std", "var", "norm", "matmul", "mm", "bmm", "dot", "linear", "einsum", "softmax", "cumsum",
        "layer_norm", "batch_norm", "group_norm", "normalize", "conv1d", "conv2d", "conv3d", "cdist", "cov",
        "corrcoef", "fft", "scaled_dot_product_attention", "std_mean", "var_mean", "sum",
    }
)  # fmt: skip
_MASKS = frozenset(
    {
        "masked_fill", "masked_fill_", "full", "full_like", "new_full", "where", "triu", "tril", "triu_", "tril_",
        "fill_diagonal_", "fill_diagonal", "index_fill", "index_fill_", "scatter", "scatter_", "fill_",
        "generate_square_subsequent_mask", "masked_scatter",
    }
)  # fmt: skip
_FILLS = frozenset({"full", "full_like", "new_full", "fill_"})
_PASSES = frozenset(
    {
        "tensor", "from_numpy", "as_tensor", "asarray", "array", "to", "float", "double", "cpu", "cuda", "numpy",
        "to_numpy", "split", "chunk", "stack", "cat", "concatenate", "vstack", "hstack", "view", "reshape",
        "unsqueeze", "squeeze", "clone", "copy", "detach", "permute", "transpose", "DataFrame", "Series", "astype",
        "DataLoader", "TensorDataset", "list", "tuple", "dict", "zip", "enumerate", "iter", "next",
        "sliding_window_view", "expand", "repeat", "flatten", "contiguous", "ascontiguousarray", "dropna", "tolist",
        "unbind", "narrow", "index_select", "type", "requires_grad_", "FloatTensor", "Tensor", "items", "values",
        "get", "pop", "unfold", "ravel", "reversed", "len", "range", "Parameter", "append", "extend", "item",
        "movedim", "swapaxes", "T",
    }
)  # fmt: skip
_FILES = (
    "load", "loadtxt", "genfromtxt", "fromfile", "imread", "open", "memmap", "fromstring", "read_csv", "read_table",
    "read_parquet", "read_excel", "read_json", "read_pickle", "read_feather", "read_sql", "read_fwf", "read_hdf",
)  # fmt: skip
_TEXTS = frozenset(
    {
        "loads", "reader", "DictReader", "read", "readline", "readlines", "splitlines", "input", "getenv", "StringIO",
        "BytesIO", "literal_eval", "to_numeric", "findall", "finditer", "match", "search", "group", "groups",
    }
)  # fmt: skip
_OF_TEXTS = frozenset({"strip", "lstrip", "rstrip", "rsplit", "partition", "rpartition", "startswith", "endswith"})
_SHAPES = frozenset(
    {
        "map", "filter", "sorted", "int", "set", "asdict", "concat", "merge", "reindex", "pivot", "pivot_table",
        "unstack", "shift", "asfreq", "set_index", "reset_index", "sort_values", "drop", "keys", "fromkeys", "islice",
        "zip_longest", "chain",
    }
)  # fmt: skip
"""Functions that rearrange values; some leave gaps."""
_HANDING = _PASSES | _TEXTS | _SHAPES | frozenset(dir(str))
_HANDLES = frozenset(
    {
        "isnan", "isfinite", "isinf", "nan_to_num", "nanmean", "nansum", "nanmedian", "nanstd", "nanvar", "nanmin",
        "nanmax", "nanquantile", "nanpercentile", "nanargmax", "nanargmin", "isna", "isnull", "notna", "notnull",
        "fillna", "dropna", "interpolate", "ffill", "bfill", "isposinf", "isneginf", "masked_invalid",
        "nan_to_num_", "nanprod", "nancumsum",
    }
)  # fmt: skip
_LEAVES_OUT = frozenset({"nan_to_num", "nan_to_num_", "masked_invalid", *(n for n in _HANDLES if n.startswith("nan"))})
_NARROW = frozenset({"float16", "half"})
"""Types that values may not fit into."""

_SELECTS = frozenset(
    {"softmax", "log_softmax", "logsumexp", "Categorical", "multinomial", "topk", "logaddexp", "cross_entropy"}
)


_COMPARES = frozenset(
    {
        "max", "min", "argmax", "argmin", "amax", "amin", "maximum", "minimum", "cummax", "cummin", "fmax", "fmin",
        "sort", "argsort", "exp", "logcumsumexp", "sigmoid", "kthvalue", "clamp", "clamp_min", "clip", "logsigmoid",
        "softmin", "gumbel_softmax", "exp_",
    }
)  # fmt: skip
_DERIVES = frozenset({"grad", "vjp", "jvp", "jacobian", "hessian", "jacrev", "jacfwd", "grad_and_value"})

GRADIENTS = "<gradients>"
"""Stands among the handled names for the gradients of whatever."""


def call_name(node: ast.Call) -> str:
    """Return the bare name of the function or method that is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def calls(expression: ast.AST | None) -> Iterator[ast.Call]:
    """Yield the calls in an expression."""
    return (node for node in ast.walk(expression) if isinstance(node, ast.Call)) if expression is not None else iter(())


def computes(expression: ast.AST | None, how: str = "=") -> bool:
    """Tell whether an expression, or the operator that puts it under a name, does arithmetic."""
    if expression is None:
        return False
    return how == "augment" or any(isinstance(node, ast.BinOp) for node in ast.walk(expression))


def mixes(expression: ast.AST | None) -> bool:
    """Tell whether one bad element reaches others: a reduction, a matrix product, a loss function."""
    if expression is None:
        return False
    if any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) for node in ast.walk(expression)):
        return True
    return any(
        call_name(call) in _MIXES or call_name(call).endswith(("_loss", "cross_entropy", "kl_div"))
        for call in calls(expression)
    )


def masks(expression: ast.AST | None) -> bool:
    """Tell whether an operation is one that writes markers, such as the -inf of a mask."""
    return any(call_name(call) in _MASKS and not _fills_finite(call) for call in calls(expression))


def is_mask_method(name: str) -> bool:
    """Tell whether a method of this name writes markers into its receiver: `scores.fill_diagonal_(inf)`."""
    return name in _MASKS


def _fills_finite(call: ast.Call) -> bool:
    """Tell whether a call fills memory with a number that is written as it is: `torch.full((2, 3), 20.0)`."""
    given = [keyword.value for keyword in call.keywords if keyword.arg in ("fill_value", "value")] or call.args[-1:]
    number = given[0].value if call_name(call) in _FILLS and given and isinstance(given[0], ast.Constant) else None
    return isinstance(number, (int, float)) and math.isfinite(number)


def selects(expression: ast.AST | None) -> bool:
    """Tell whether an operation is one for which -inf means "not this one"."""
    return any(call_name(call) in _SELECTS for call in calls(expression))


def finds_best(expression: ast.AST | None) -> bool:
    """Tell whether an operation compares scores, or makes probabilities of their logarithms: -inf never wins."""
    return any(call_name(call) in _COMPARES for call in calls(expression))


def derives(expression: ast.AST | None) -> bool:
    """Tell whether an operation returns derivatives: `torch.autograd.grad(loss, x)`."""
    return any(call_name(call) in _DERIVES for call in calls(expression))


def only_passes(expression: ast.AST | None, own: Collection[str] = ()) -> bool:
    """Tell whether an expression hands values on as they are: it selects, copies, converts or reads a file.

    `own` are functions of the program, whose bodies are judged by themselves.
    """
    if expression is None:
        return False
    if any(call_name(call) in _FILES for call in calls(expression)):
        return True
    if any(isinstance(node, ast.BinOp) for node in ast.walk(expression)) or narrows(expression):
        return False
    return all(call_name(call) in _HANDING or call_name(call) in own for call in calls(expression))


def from_text(expression: ast.AST | None) -> bool:
    """Tell whether an expression is a text, or reads one: `line.rstrip()`, `json.loads(line)`."""
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        return True
    return any(reads_text(call) or call_name(call) in _OF_TEXTS for call in calls(expression))


def hands_on(call: ast.Call) -> bool:
    """Tell whether a call hands the values of its receiver or its arguments on as they are."""
    return call_name(call) in _PASSES


def reads_text(call: ast.Call) -> bool:
    """Tell whether a call reads a file or a text."""
    return call_name(call) in _FILES or call_name(call) in _TEXTS


def asks(name: str) -> bool:
    """Tell whether a function of this name asks after NaN or infinities, fills, drops or leaves them out."""
    return name in _HANDLES


def leaves_out(name: str) -> bool:
    """Tell whether no NaN of the argument is in what a function of this name returns."""
    return name in _LEAVES_OUT


def narrows(expression: ast.AST | None) -> bool:
    """Tell whether an expression makes half-precision numbers."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in _NARROW
        for node in (ast.walk(expression) if expression is not None else ())
    )


def handled_names(trees: Iterator[ast.AST]) -> set[str]:
    """Return the names whose NaN or infinities the text asks after, fills, drops or leaves out."""
    names: set[str] = set()
    for tree in trees:
        for call in calls(tree):
            if asks(call_name(call)):
                names |= {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
                if any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in ast.walk(call)):
                    names.add(GRADIENTS)
    return names


def is_alias(expression: ast.AST | None) -> bool:
    """Tell whether an expression is a mere path, `acts[-1]`."""
    return isinstance(expression, (ast.Name, ast.Attribute, ast.Subscript))
