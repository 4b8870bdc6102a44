"""Which code is the user's own, and its text."""

from __future__ import annotations

import linecache
import sys
import types
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from torchmagic.namespace import Namespace
from torchmagic.source import SourceText
from torchmagic.source.user_files import is_user_file

_MOST_TEXTS = 60


def is_text_of(filename: str, source: SourceText) -> bool:
    """Tell whether code of this file name was compiled from the source: by the name, else by the text itself."""
    return filename == source.filename or "".join(linecache.getlines(filename)) == source.text


def earlier_texts(found: Namespace, cell: SourceText) -> list[tuple[SourceText, set[str]]]:
    """Return the texts that define the functions and classes the namespace holds, beside the checked cell itself.

    Each comes with the top-level names to read from it. The text of an earlier cell is still in `linecache`.
    """
    wanted: dict[str, set[str]] = defaultdict(set)
    for name, code in _definitions(found):
        if code.co_filename != cell.filename and is_user_file(code.co_filename):
            wanted[code.co_filename].add(name)
    texts = []
    for filename, names in list(wanted.items())[:_MOST_TEXTS]:
        text = "".join(linecache.getlines(filename))
        if text and not is_text_of(filename, cell):
            texts.append((SourceText.read(text, filename), names))
    return texts


def _definitions(found: Namespace) -> Iterator[tuple[str, types.CodeType]]:
    for seen in found.of_kind("function"):
        top = seen.obj.__qualname__.partition(".")[0]
        yield top, seen.obj.__code__
    for kind in {type(seen.obj) for seen in found.seen.values()} | _named_classes(found):
        for base in type.__getattribute__(kind, "__mro__"):
            own = type.__getattribute__(base, "__dict__")
            if _is_library_module(own.get("__module__")):
                continue
            code = next((code for code in map(_code, own.values()) if code is not None), None)
            if code is not None:
                yield own.get("__qualname__", base.__name__).partition(".")[0], code


def _is_library_module(name: Any) -> bool:
    """Tell whether a module is a library's by its file; `__main__` is the user's, whoever started it."""
    if name == "__main__":
        return False
    filename = getattr(sys.modules.get(name), "__file__", None) if type(name) is str else None
    return name == "builtins" or (type(filename) is str and not is_user_file(filename))


def _named_classes(found: Namespace) -> set[type]:
    return {value for value in found.names.values() if issubclass(type(value), type)}


def _code(value: Any) -> types.CodeType | None:
    function = value.__func__ if type(value) in (staticmethod, classmethod) else value
    return function.__code__ if type(function) is types.FunctionType else None
