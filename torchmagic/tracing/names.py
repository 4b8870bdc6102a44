"""Operations as people write them: `torch.log` for `aten::log`, `batch_norm` for `native_batch_norm`."""

from __future__ import annotations

import ast
import re
import sys
from typing import Final

from torchmagic.source.refs import bare_name

_SAID: Final = {
    "_local_scalar_dense": "item",
    **dict.fromkeys(("_softmax", "_safe_softmax"), "softmax"),
    "_log_softmax": "log_softmax",
    "addmm": "linear",
    **dict.fromkeys(
        ("native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm", "_batch_norm_with_update"), "batch_norm"
    ),
    "native_layer_norm": "layer_norm",
    "native_group_norm": "group_norm",
    "convolution": "conv",
    "_to_copy": "to",
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), "nll_loss"),
    **dict.fromkeys(("linalg_vector_norm", "_foreach_norm"), "norm"),
    **dict.fromkeys(
        (
            "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
            "_scaled_dot_product_efficient_attention", "_scaled_dot_product_attention_math",
        ),
        "scaled_dot_product_attention",
    ),
    "_ctc_loss": "ctc_loss",
    **dict.fromkeys(("_cdist_forward", "_euclidean_dist"), "cdist"),
    "_thnn_fused_lstm_cell": "lstm_cell",
    "_thnn_fused_gru_cell": "gru_cell",
    "mkldnn_rnn_layer": "lstm",
    "_weight_norm_interface": "weight_norm",
    "_embedding_bag": "embedding_bag",
    "_fused_adam_": "Adam.step",
    "_fused_adamw_": "AdamW.step",
    "_fused_sgd_": "SGD.step",
    "linalg_inv_ex": "inv",
    "_linalg_solve_ex": "solve",
    "_linalg_svd": "svd",
    "_linalg_eigh": "eigh",
    "linalg_cholesky_ex": "cholesky",
}  # fmt: skip
"""Names of the dispatcher, which nobody writes, and the names that people know."""

_WRITTEN_AS: Final = {
    "div": "/", "true_divide": "/", "mul": "*", "add": "+", "sub": "-", "rsub": "-", "pow": "**", "mm": "@",
    "bmm": "@", "mv": "@", "div_": "/=", "mul_": "*=", "add_": "+=", "sub_": "-=",
}  # fmt: skip
"""Operators that people write instead of the operation's name."""


_CALLED: Final = {
    "pow": {"square", "float_power"},
    "div": {"divide", "true_divide"},
    "mul": {"multiply"},
    "sub": {"subtract"},
    "acos": {"arccos"},
    "asin": {"arcsin"},
    "atanh": {"arctanh"},
    "acosh": {"arccosh"},
    "linalg_vector_norm": {"norm", "vector_norm"},
    "special_xlogy": {"xlogy"},
    "_linalg_eigh": {"eigh", "eigvalsh"},
    "_linalg_svd": {"svd", "svdvals"},
    "linalg_inv_ex": {"inv", "inverse"},
    "linalg_cholesky_ex": {"cholesky"},
    "_linalg_slogdet": {"slogdet", "logdet"},
    **{name: {"matmul", "einsum", "linear", "inner", "tensordot"} for name in ("mm", "bmm", "mv", "dot", "addmm")},
}
"""Other functions, and methods, by which people call an operation of the dispatcher."""

_IN_FUNCTIONAL: Final = frozenset(
    {"batch_norm", "ctc_loss", "embedding_bag", "group_norm", "instance_norm", "layer_norm"}
)
"""Names that `torch` has too, undocumented, which people know from `torch.nn.functional`."""


_IN_LINALG: Final = frozenset(
    {"cholesky", "det", "eig", "eigh", "eigvalsh", "inv", "lstsq", "matrix_norm", "pinv", "qr", "slogdet",
     "solve", "svd", "svdvals", "vector_norm"}
)  # fmt: skip


def is_called(operation: str, name: str) -> bool:
    """Tell whether a function or method of this name is the operation."""
    plain = operation.removesuffix("_")
    return name.strip("_") in (operation.strip("_"), _SAID.get(operation)) or name.removesuffix("_") in _CALLED.get(
        plain, ()
    )


def called_as(operation: str, expression: str) -> str:
    """Return the name, or the operator, that an expression calls an operation by; nothing where it does not."""
    try:
        node = ast.parse(expression, mode="eval").body
    except SyntaxError:
        return ""
    if operation == "reciprocal" and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return "/"
    name = bare_name(node.func) if isinstance(node, ast.Call) else ""
    return name if name and is_called(operation, name) else ""


def spelled_in(expression: str, operation: str) -> str:
    """Return the operation as an expression spells it, else as people mostly do."""
    name = called_as(operation, expression)
    torch = sys.modules["torch"]
    if name in _WRITTEN_AS and hasattr(torch.Tensor, name):  # `torch.div`, where others write `/`
        return f"torch.{name}" if hasattr(torch, name) else f"Tensor.{name}"
    return spelled(name if name and name.strip("_") != operation.strip("_") else operation)


def short_name(operation: str) -> str:
    """Return the operation's name as a word: `log`, `softmax`, `/`."""
    if operation.startswith("_foreach_"):
        operation = operation.removeprefix("_foreach_")
    return _WRITTEN_AS.get(operation) or _SAID.get(operation) or operation.removeprefix("linalg_")


def spelled(operation: str) -> str:
    """Return the operation as people write it: `torch.log`, `F.softmax`, `x.sqrt_()`, `/`."""
    if operation.startswith("_foreach_"):
        operation = operation.removeprefix("_foreach_")
    if operation in _WRITTEN_AS:
        return _WRITTEN_AS[operation]
    name = _SAID.get(operation, operation)
    torch = sys.modules["torch"]
    if "." in name or name == "to":
        return name if name != "to" else "Tensor.to"
    if name.endswith("_") or (not hasattr(torch, name) and hasattr(torch.Tensor, name)):
        return f"Tensor.{name}"
    inner = name.removeprefix("linalg_")
    if inner in _IN_LINALG and "linalg_" in operation:
        return f"torch.linalg.{inner}"
    if name in _IN_FUNCTIONAL:
        return f"F.{name}"
    if hasattr(torch, name) and not name.startswith("_"):
        return f"torch.{name}"
    if name == "conv":
        return "the convolution"
    return f"F.{name}" if hasattr(torch.nn.functional, name) else name.strip("_")


def plain_name_of_node(node: str) -> str:
    """Return the forward operation of a node of the graph as the dispatcher names it: `log` for `LogBackward0`."""
    name = re.sub(r"Backward\d*$", "", node.rpartition("::")[2])
    if not node[-1:].isdigit():
        return name  # a class of the user's
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def of_node(node: str) -> str:
    """Return the forward operation of a node of the graph as a word: `log`, `softmax`, `/`."""
    return short_name(plain_name_of_node(node))
