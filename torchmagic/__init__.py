"""torchmagic: PyTorch's classic mistakes, named in the notebook where they are made, and where the memory went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from IPython.core.interactiveshell import InteractiveShell

    from torchmagic.checking.traced_block import TracedBlock
    from torchmagic.findings import Level
    from torchmagic.memory_report import MemoryReport
    from torchmagic.report import Report

__version__ = "0.1.0"

__all__ = ["__version__", "check", "memory", "trace"]


def check(
    namespace: Mapping[str, Any],
    *,
    source: str | None = None,
    error: BaseException | None = None,
    device: str | None = None,
    only: Iterable[str] = (),
    ignore: Iterable[str] = (),
    level: Level = "warning",
) -> Report:
    """Look for PyTorch's classic mistakes among the variables of `namespace`.

    Args:
        namespace: variable names and their values, such as `globals()`.
        source: the code that filled the namespace. It gives findings their lines and the rules their context.
        error: the exception that ended the code, with its traceback.
        device: where tensors should be, such as `"cuda"`; inferred when left out.
        only: run these rules alone.
        ignore: leave these rules out.
        level: the least level that counts as a finding; what is below it is in `Report.notes`.

    Returns:
        A report that shows itself in a notebook and prints as text. Nothing in the namespace is changed.

    Raises:
        ValueError: a rule, level or device that does not exist.
    """
    from torchmagic.checking import check as run

    return run(namespace, source=source, error=error, device=device, only=only, ignore=ignore, level=level)


def memory(namespace: Mapping[str, Any] | None = None, *, paths: Iterable[str] = ()) -> MemoryReport:
    """Tell where the memory of every device went, by variable name.

    Args:
        namespace: variable names and their values, such as `globals()`; those of `__main__`, which is the notebook's
            own module, when left out.
        paths: variables, or paths from them such as `"model.encoder"`, to open down to their layers.

    Returns:
        A report that shows itself in a notebook and prints as text: `.devices`, `.holders`, `.unattributed_bytes`, all
        in bytes, and None for what cannot be known. Nothing is changed by looking: no context is created, no cache
        emptied, no peak reset.

    Raises:
        KeyError: a path that leads nowhere.
    """
    import sys

    from torchmagic.measuring import look

    names = vars(sys.modules["__main__"]) if namespace is None else namespace
    return look(names, paths=tuple(paths))


def trace(
    *,
    device: str | None = None,
    only: Iterable[str] = (),
    ignore: Iterable[str] = (),
    level: Level = "warning",
) -> TracedBlock:
    """Follow the operations of a `with` block, to name the one that the first NaN or infinity was born in.

        with torchmagic.trace() as followed:
            train()
        print(followed.report)

    Args:
        device: where tensors should be, such as `"cuda"`; inferred when left out.
        only: run these rules alone.
        ignore: leave these rules out.
        level: the least level that counts as a finding.

    Returns:
        A context manager. After the block its `report` holds what `%%torchcheck --trace` would show of it, also when
        the block ended with an exception, which goes on its way.

    Raises:
        ValueError: a rule or level that does not exist.
    """
    from torchmagic.checking.traced_block import TracedBlock

    return TracedBlock(device=device, only=only, ignore=ignore, level=level)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics; IPython calls this for `%load_ext torchmagic`."""
    from torchmagic.magics import load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take the magics away again; IPython calls this for `%unload_ext torchmagic`."""
    from torchmagic.magics import unload

    unload(shell)
