"""`import torchmagic` and `%load_ext torchmagic` cost milliseconds, since nothing heavy is loaded by them."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "numpy", "ipywidgets", "libcst", "pandas")


def loaded_by(statement: str, libraries: tuple[str, ...]) -> list[str]:
    """Return those of `libraries` that a fresh Python holds after `statement`."""
    code = f"import sys\n{statement}\nprint(*sorted(set({libraries!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_package_loads_nothing_heavy() -> None:
    """Importing the package loads neither torch nor IPython."""
    assert loaded_by("import torchmagic", (*HEAVY, "IPython")) == []


def test_the_magics_load_nothing_heavy() -> None:
    """Registering the magics in a shell loads IPython, which is there already, and nothing else."""
    statement = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "from traitlets.config import Config\n"
        "config = Config()\n"
        "config.HistoryManager.enabled = False\n"
        "shell = InteractiveShell.instance(config=config)\n"
        "before = set(sys.modules)\n"
        "shell.extension_manager.load_extension('torchmagic')\n"
        "assert 'torchcheck' in shell.magics_manager.magics['cell']\n"
        "assert not {'torch', 'numpy'} & before"
    )

    assert loaded_by(statement, HEAVY) == []


@pytest.mark.parametrize("library", ["numpy", "libcst", "IPython"])
def test_a_heavy_import_is_seen(library: str) -> None:
    """The check above can fail: a library that is imported is named."""
    assert loaded_by(f"import torchmagic\nimport {library}", ("torch", "libcst", "numpy", "IPython")) == [library]
