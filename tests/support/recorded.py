"""Recorded answers of real kube-apiservers, as folders of files. The archives are in tests/recorded.

`scenarios`, `facts` and `protobuf-vectors` are those of v1.36.4. `differences-<minor>.tar.xz` has what the newest patch
of another minor answers otherwise: for each JSON file, the edits that turn the file of 1.36 into its own. The scenarios
of the folder `versions` exist for other minors only; 1.36 has no answers for them.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from json_edits import edited

ARCHIVES = Path(__file__).parents[1] / "recorded"
OF_VERSIONS = ARCHIVES / "versions"
BASE = "1.36"
"""Minor version of the archives without a version in their name."""


@cache
def recorded(name: str, version: str = BASE) -> Path:
    """Return the folder of `scenarios`, `facts` or `protobuf-vectors`, unpacked once for each process."""
    if version != BASE:
        return _of_another_version(name, version)
    with tarfile.open(ARCHIVES / f"{name}.tar.xz") as archive:
        archive.extractall(_unpacked(), filter="data")
    return _unpacked() / name


def differences_archive(version: str) -> Path:
    return ARCHIVES / f"differences-{version}.tar.xz"


def recorded_edits(version: str) -> dict[str, list[Any]]:
    """Return the edits of another minor: file -> edits."""
    with tarfile.open(differences_archive(version)) as archive:
        files = ((member.name, archive.extractfile(member)) for member in archive)
        return {name: json.load(content) for name, content in files if content is not None}


def _of_another_version(name: str, version: str) -> Path:
    folder = _unpacked() / version / name
    shutil.copytree(recorded(name), folder)
    if name == "scenarios":
        shutil.copytree(OF_VERSIONS, folder / OF_VERSIONS.name)
    for file, edits in recorded_edits(version).items():
        if file.startswith(f"{name}/"):
            _edit(folder.parent / file, edits)
    return folder


def _edit(file: Path, edits: list[list[object]]) -> None:
    before = json.loads(file.read_text()) if file.exists() else None
    file.write_text(json.dumps(edited(before, edits), indent=1))


@cache
def _unpacked() -> Path:
    # Goes with the process, since nothing else holds on to it.
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="recorded-"))
    return Path(_FOLDERS[-1].name)


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
