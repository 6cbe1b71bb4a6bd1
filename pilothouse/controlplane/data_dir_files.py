"""The files of a data directory beside its store: certificates, keys, the administrator's kubeconfig."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from pilothouse.apiserver.storage.backup.model import BackupError, SavedFile
from pilothouse.controlplane.data_dir import STORE
from pilothouse.machinery.whole_files import make_directory, write_atomically

_NOT_KEPT = (STORE, "lock")


def files_of(data_dir: Path) -> Iterator[SavedFile]:
    """Every file but those of the store, in the order of their names. Raises OSError."""
    for path in sorted(data_dir.rglob("*")):
        inside = path.relative_to(data_dir)
        if inside.parts[0] in _NOT_KEPT or inside.name.startswith(".") or not path.is_file():
            continue
        yield SavedFile(inside.as_posix(), path.stat().st_mode & 0o777, path.read_bytes())


def refuse_other_files(data_dir: Path, files: Iterable[SavedFile]) -> None:
    """Raises BackupError where a file is there already and is another one."""
    for each in files:
        path = _place(data_dir, each)
        if path.exists() and path.read_bytes() != each.content:
            raise BackupError(
                f"{path} is there already and is another one than in the backup: "
                "use another --data-dir, or --without-files to keep those that are there"
            )


def put_files(data_dir: Path, files: Iterable[SavedFile]) -> int:
    """Write the files with their modes; return how many there are. Raises BackupError, OSError."""
    written = 0
    for each in files:
        written += 1
        path = _place(data_dir, each)
        for folder in reversed(path.relative_to(data_dir).parents[:-1]):
            make_directory(data_dir / folder)
        write_atomically(path, each.content, mode=each.mode)
    return written


def _place(data_dir: Path, file: SavedFile) -> Path:
    inside = PurePosixPath(file.path)
    if inside.is_absolute() or ".." in inside.parts or os.path.isabs(file.path):
        raise BackupError(f"the backup has a file {file.path}, which would be outside of the data directory")
    return data_dir / inside
