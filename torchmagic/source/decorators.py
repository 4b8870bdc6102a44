"""Functions that run without a call in the text, and functions that hand out a result again: by their decorators."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from torchmagic.source.refs import bare_name
from torchmagic.source.scopes import Scope

KEPT_PROPERTY = "cached_property"
_PROPERTIES = frozenset({"property", KEPT_PROPERTY})
_CACHES = frozenset({"cache", "lru_cache", KEPT_PROPERTY})


def decorators(scope: Scope) -> set[str]:
    """Return the bare names of a function's decorators."""
    found: Iterable[ast.expr] = getattr(scope.node, "decorator_list", ())
    return {bare_name(node.func if isinstance(node, ast.Call) else node) for node in found}


def is_property(scope: Scope) -> bool:
    """Tell whether reading an attribute runs a function."""
    return scope.class_name is not None and bool(decorators(scope) & _PROPERTIES)


def keeps_results(scope: Scope) -> bool:
    """Tell whether a function gives the very same object again when it is asked the same."""
    return bool(decorators(scope) & _CACHES)
