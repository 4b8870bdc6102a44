"""Which files are the user's: cells of a notebook and scripts, not libraries, nor this package."""

from __future__ import annotations

import os
import sysconfig
from functools import lru_cache
from pathlib import Path

_LIBRARY_DIRECTORIES = tuple(
    path for key in ("stdlib", "platstdlib", "purelib", "platlib") if (path := sysconfig.get_paths().get(key))
)
_OURS = f"{Path(__file__).parent.parent}{os.sep}"


@lru_cache(maxsize=4096)
def is_user_file(filename: str) -> bool:
    """Tell whether a code object's file is a notebook cell or a file of the user's, not a library."""
    if filename.startswith(("<frozen", _OURS)) or "site-packages" in filename or "dist-packages" in filename:
        return False
    return not filename.startswith(_LIBRARY_DIRECTORIES)
