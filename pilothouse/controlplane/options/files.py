"""Files named by options."""

from __future__ import annotations

import os
from collections.abc import Iterator


def content(path: str) -> bytes:
    """Return the content. Raises ValueError with Go's message for an unreadable file."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ValueError(f"open {path}: {os.strerror(error.errno or 0).lower()}") from None


def missing_files(paths: dict[str, str]) -> Iterator[str]:
    """Yield a problem for each flag whose file is missing; empty paths are skipped."""
    for flag, path in paths.items():
        if path and not os.path.isfile(path):
            yield f"--{flag}: no such file: {path}"
