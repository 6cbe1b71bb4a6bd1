"""What was recorded of a real kube-apiserver v1.36.4, as folders of files. The archives are in tests/recorded."""

from __future__ import annotations

import tarfile
import tempfile
from functools import cache
from pathlib import Path

ARCHIVES = Path(__file__).parents[1] / "recorded"


@cache
def recorded(name: str) -> Path:
    """Return the folder of `scenarios`, `facts` or `protobuf-vectors`, unpacked once for each process."""
    folder = _unpacked()
    with tarfile.open(ARCHIVES / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / name


@cache
def _unpacked() -> Path:
    # Goes with the process, since nothing else holds on to it.
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="recorded-"))
    return Path(_FOLDERS[-1].name)


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
