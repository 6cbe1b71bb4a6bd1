"""The package as a build with another overlay would have made it, for servers in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import pilothouse
from tools.builtin_types.build import build
from tools.builtin_types.overlay import read_overlay
from tools.builtin_types.sources import BASE, installed_types

_PACKAGE = Path(pilothouse.__file__).parent


@contextmanager
def built_with(overlay: Path, place: Path) -> Iterator[None]:
    """Have new Python processes import the package with the overlay's fields, beside those that were built into it.

    In `place` stand links to the package's files, apart from what the build makes.
    """
    machinery = place / "pilothouse" / "machinery"
    machinery.mkdir(parents=True)
    _link(_PACKAGE, machinery.parent, but="machinery")
    _link(_PACKAGE / "machinery", machinery, but="_generated")
    build({BASE: installed_types()}, read_overlay(overlay), machinery / "_generated")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(place)  # `python -m` looks here first
        yield


def _link(source: Path, target: Path, *, but: str) -> None:
    for path in source.iterdir():
        if path.name != but:
            (target / path.name).symlink_to(path)
