"""What becomes of a value: is it added, formatted, stored, handed to a function, or only named?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from torchmagic.source.scopes import Scope, Step

UseKind = Literal[
    "statement", "arithmetic", "comparison", "truth", "format", "iteration", "subscript", "attribute",
    "argument", "store", "return", "with", "call", "other",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Use:
    """One expression and what is done with its value.

    `parent` is the node that does it; `via` is the value as it arrives there: the expression itself, or the list, tuple
    or conditional that it is a part of.
    """

    node: ast.expr
    step: Step
    kind: UseKind
    parent: ast.AST
    via: ast.expr
    scope: Scope

    @property
    def is_part(self) -> bool:
        """Whether the value goes on as a part of something else, such as an element of a list."""
        return isinstance(
            self.via,
            (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.BinOp),
        )


_CARRIERS = (ast.Starred, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.NamedExpr)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)


def uses_of(step: Step, kinds: tuple[type[ast.expr], ...]) -> Iterator[Use]:
    """Yield every expression of these types in a statement, with its use."""
    parents: dict[ast.AST, ast.AST] = {}
    nodes: list[ast.AST] = []
    if isinstance(step.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    for own in step.own_expressions():
        parents[own] = step.node
        for node in ast.walk(own):
            nodes.append(node)
            for child in ast.iter_child_nodes(node):
                parents[child] = node
    for node in nodes:
        if isinstance(node, kinds):
            yield _use(node, step, parents)


def _use(node: ast.expr, step: Step, parents: dict[ast.AST, ast.AST]) -> Use:
    via: ast.expr = node
    parent = parents[node]
    while isinstance(parent, ast.expr) and _carries(parent, via):
        via, parent = parent, parents[parent]
    if isinstance(parent, ast.keyword):
        return Use(node, step, "argument", parents[parent], via, step.scope)
    return Use(node, step, _kind(parent, via), parent, via, step.scope)


def _carries(parent: ast.expr, via: ast.expr) -> bool:
    """Tell whether the value of `parent` is, or holds, the value of `via`."""
    if isinstance(parent, _CARRIERS):
        return not (isinstance(parent, ast.Dict) and via in parent.keys)
    if isinstance(parent, ast.IfExp):
        return via is not parent.test
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Mult)):
        return _is_list(via)
    return isinstance(parent, _COMPREHENSIONS) and via is parent.elt


def _is_list(value: ast.expr) -> bool:
    """Tell whether a value is a list, also a repeated or joined one: adding or multiplying takes its elements along."""
    if isinstance(value, ast.BinOp):
        return _is_list(value.left) or _is_list(value.right)
    return isinstance(value, (ast.List, ast.Tuple, ast.ListComp))


def _kind(parent: ast.AST, via: ast.expr) -> UseKind:
    if isinstance(parent, ast.Call):
        return "call" if via is parent.func else "argument"
    if isinstance(parent, ast.Attribute):
        return "attribute"
    if isinstance(parent, ast.Subscript):
        return "subscript" if via is parent.value else "arithmetic"
    if isinstance(parent, ast.BinOp):
        formats = isinstance(parent.op, ast.Mod) and isinstance(parent.left, ast.Constant) and parent.right is via
        return "format" if formats else "arithmetic"
    if isinstance(parent, ast.UnaryOp):
        return "truth" if isinstance(parent.op, ast.Not) else "arithmetic"
    if isinstance(parent, (ast.BoolOp, ast.IfExp)):
        return "truth"
    if isinstance(parent, ast.Compare):
        return "comparison"
    if isinstance(parent, ast.FormattedValue):
        return "format"
    if isinstance(parent, ast.comprehension):
        return "iteration" if via is parent.iter else "truth"
    return _statement_kind(parent, via)


def _statement_kind(parent: ast.AST, via: ast.expr) -> UseKind:
    if isinstance(parent, ast.Expr):
        return "statement"
    if isinstance(parent, (ast.Assign, ast.AnnAssign)):
        return "store" if via is parent.value else "other"
    if isinstance(parent, ast.AugAssign):
        return "other" if via is not parent.value else "store" if _is_list(via) else "arithmetic"
    if isinstance(parent, (ast.For, ast.AsyncFor)):
        return "iteration" if via is parent.iter else "other"
    if isinstance(parent, (ast.If, ast.While, ast.Assert)):
        return "truth" if via is parent.test else "other"
    if isinstance(parent, ast.Return):
        return "return"
    if isinstance(parent, (ast.With, ast.AsyncWith)):
        return "with" if any(via is item.context_expr for item in parent.items) else "other"
    return "other"
