"""Files that options name."""

from __future__ import annotations

import os
from collections.abc import Iterator


def content(path: str) -> bytes:
    """Raises ValueError, in Go's words, for a file that cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ValueError(f"open {path}: {os.strerror(error.errno or 0).lower()}") from None


def missing_files(paths: dict[str, str]) -> Iterator[str]:
    """A problem for each flag whose file is not there; an empty path is no path."""
    for flag, path in paths.items():
        if path and not os.path.isfile(path):
            yield f"--{flag}: no such file: {path}"
