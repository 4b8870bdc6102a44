"""Give each lambda a name: a copy of a text in which it is a function of its own, before the statement it stands in."""

from __future__ import annotations

import ast
import copy
from dataclasses import replace
from typing import Any

from torchmagic.source.text import SourceText

LAMBDA = "<lambda"
"""What the name of every such function starts with; no function of a text is called that."""


def named_lambdas(text: SourceText) -> SourceText:
    """Return the text with a tree in which lambdas are functions; lines, columns and the text itself stay."""
    if text.tree is None or not any(isinstance(node, ast.Lambda) for node in ast.walk(text.tree)):
        return text
    tree = copy.deepcopy(text.tree)
    _Namer().generic_visit(tree)
    return replace(text, tree=tree)


class _Namer(ast.NodeTransformer):
    def __init__(self) -> None:
        self._count = 0
        self._made: list[list[ast.stmt]] = [[]]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self._block(value))
            elif isinstance(value, list):
                setattr(node, name, [self.visit(part) if isinstance(part, ast.AST) else part for part in value])
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for node in body:
            self._made.append([])
            kept = self.visit(node)
            found += [*self._made.pop(), kept]
        return found

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        """Leave what stands in a class itself as it is: a function there would be a method."""
        node.body = [
            self.visit(part) if isinstance(part, (ast.FunctionDef, ast.ClassDef)) else part for part in node.body
        ]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Name:
        self._count += 1
        name = f"{LAMBDA} {self._count}>"
        arguments: Any = self.visit(node.args)
        self._made.append([])
        result = ast.copy_location(ast.Return(self.visit(node.body)), node.body)
        function = ast.FunctionDef(name=name, args=arguments, body=[*self._made.pop(), result], decorator_list=[])
        self._made[-1].append(ast.copy_location(function, node))
        return ast.copy_location(ast.Name(name, ast.Load()), node)
