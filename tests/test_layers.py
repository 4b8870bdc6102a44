"""Imports go down only, and the libraries that cost time or tie us to a front end stay where they belong."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "torchmagic"

LEVELS = {
    "findings": 0,
    "holdings": 0,
    "memory_changes": 0,
    "devices": 1,
    "kinds": 1,
    "namespace": 1,
    "source": 1,
    "values": 1,
    "render": 1,
    "autograd_graph": 2,
    "tracing": 2,
    "report": 2,
    "memory_report": 2,
    "checking": 3,
    "measuring": 3,
    "placement": 4,
    "calling": 4,
    "history": 4,
    "mismatch": 4,
    "nonfinite": 4,
    "sharing": 4,
    "checks": 5,
    "cells": 6,
    "panel": 6,
    "magics": 7,
}
"""A part imports parts of a lower level, and its own modules. `torchmagic/__init__.py` is the door: it may import any
part, inside functions only. Nobody imports a rule, which is a module of `checks`."""

HOMES = {
    "IPython": {"cells", "magics"},
    "ipykernel": set(),
    "ipywidgets": {"panel"},
    "libcst": set(),
}
"""The parts that may import a library; libraries that are not listed are free."""


def parts_of(package: Path) -> set[str]:
    """Return the names of the modules and packages that stand directly in `package`."""
    return {path.relative_to(package).parts[0].removesuffix(".py") for path in package.rglob("*.py")} - {"__init__"}


def imports(tree: ast.Module, module: str) -> list[tuple[str, bool]]:
    """Return the dotted name of everything that `tree` imports when it runs, and whether it does so in a function."""
    found = []

    def visit(node: ast.AST, nested: bool) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return  # never run
        nested = nested or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        if isinstance(node, ast.Import):
            found.extend((alias.name, nested) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*start, node.module] if node.module else start)
            found.extend((f"{base}.{alias.name}", nested) for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child, nested)

    visit(tree, nested=False)
    return found


def complaint(module: str, name: str, nested: bool, parts: set[str]) -> str:
    """Return what is wrong when `module` imports `name`; empty when nothing is."""
    own = module.split(".")[1]
    library, _, rest = name.partition(".")
    imported = rest.partition(".")[0]
    if library != "torchmagic":
        return f"imports {library}" if own not in HOMES.get(library, {own}) else ""
    if name.startswith("torchmagic.checks."):
        # Rules are discovered: neither the code that runs them nor another rule knows one by name.
        return f"imports the rule {name}"
    if imported not in parts or imported == own:
        return ""
    if own == "__init__":
        return "" if nested else f"imports {imported} before anybody asked for it"
    return "" if LEVELS.get(imported, 9) < LEVELS.get(own, 0) else f"imports {imported}, which is not below it"


def broken(package: Path) -> list[str]:
    """Return one sentence for each part in `package` without a level and for each import that breaks the rules."""
    parts = parts_of(package)
    sentences = [f"{part} has no level" for part in sorted(parts - set(LEVELS))]
    for path in sorted(package.rglob("*.py")):
        module = ".".join(["torchmagic", *path.relative_to(package).with_suffix("").parts])
        for name, nested in imports(ast.parse(path.read_text("utf-8")), module):
            if what := complaint(module, name, nested, parts):
                sentences.append(f"{module} {what}")
    return list(dict.fromkeys(sentences))


def small_package(folder: Path, file: str, text: str) -> Path:
    """Write a package of empty parts in which one file holds `text`."""
    for module in ("checking.py", "namespace.py", "report.py", "render/text.py", file):
        (folder / module).parent.mkdir(exist_ok=True)
        (folder / module).write_text("")
    (folder / file).write_text(text)
    return folder


def test_imports_go_down_only() -> None:
    """Every module imports only what is below it, and every part has a level."""
    assert broken(PACKAGE) == []


def test_the_table_names_only_what_exists() -> None:
    """A part that was renamed or removed leaves the table too."""
    assert sorted(set(LEVELS) - parts_of(PACKAGE)) == []


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("findings.py", "import torchmagic.checking", "torchmagic.findings imports checking, which is not below it"),
        ("source.py", "from torchmagic import namespace", "torchmagic.source imports namespace, which is not below it"),
        ("source.py", "from .render import text", "torchmagic.source imports render, which is not below it"),
        (
            "render/text.py",
            "def f():\n    from torchmagic.report import Report",
            "torchmagic.render.text imports report, which is not below it",
        ),
        (
            "checking.py",
            "def f():\n    from torchmagic.checks.nan import Nan",
            "torchmagic.checking imports the rule torchmagic.checks.nan.Nan",
        ),
        (
            "checks/nan.py",
            "from torchmagic.checks.inf import Inf",
            "torchmagic.checks.nan imports the rule torchmagic.checks.inf.Inf",
        ),
        ("checks/nan.py", "from .inf import Inf", "torchmagic.checks.nan imports the rule torchmagic.checks.inf.Inf"),
        ("checks/nan.py", "from . import inf", "torchmagic.checks.nan imports the rule torchmagic.checks.inf"),
        ("checks/nan.py", "import IPython", "torchmagic.checks.nan imports IPython"),
        ("source.py", "def f():\n    from IPython.core import magic", "torchmagic.source imports IPython"),
        ("magics.py", "import ipywidgets", "torchmagic.magics imports ipywidgets"),
        ("checking.py", "import libcst.matchers", "torchmagic.checking imports libcst"),
        (
            "__init__.py",
            "from torchmagic.checking import check",
            "torchmagic.__init__ imports checking before anybody asked for it",
        ),
        ("helpers.py", "", "helpers has no level"),
    ],
)
def test_a_broken_rule_is_seen(tmp_path: Path, file: str, text: str, sentence: str) -> None:
    """Each rule, broken once in a small package, is reported in one sentence."""
    assert broken(small_package(tmp_path, file, text)) == [sentence]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("checking.py", "from torchmagic import checks\nfrom torchmagic.namespace import walk"),
        ("checking.py", "if TYPE_CHECKING:\n    from torchmagic.report import Report"),
        ("checks/nan.py", "from torchmagic.checking import Rule"),
        ("render/html.py", "from torchmagic.render.text import line\nfrom torchmagic.findings import Finding"),
        ("render/html.py", "from .text import line"),
        ("magics.py", "import IPython\nfrom torchmagic import check\nfrom torchmagic.report import Report"),
        ("source.py", "import ast\nimport torch"),
        ("__init__.py", "def check():\n    from torchmagic.checking import check"),
    ],
)
def test_a_kept_rule_is_left_alone(tmp_path: Path, file: str, text: str) -> None:
    """What the layers allow is allowed."""
    assert broken(small_package(tmp_path, file, text)) == []
