"""In-memory files of a container. Space is bounded per pod and in total."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import field
from typing import Final

from pilothouse.machinery.dataclass import dataclass

POD_SPACE: Final = 16 << 20
POD_FILES: Final = 10_000
TOTAL_SPACE: Final = 128 << 20
TOTAL_FILES: Final = 100_000
_LONGEST_PATH, _LONGEST_NAME = 4096, 255
_ENTRY: Final = 512
"""Overhead of a file or directory in bytes."""
_DIRECTORIES: Final = ("/", "/bin", "/dev", "/etc", "/home", "/root", "/tmp", "/usr", "/var", "/var/log")
_MOST_MISSED: Final = 16
DEV_NULL: Final = "/dev/null"


class FileProblem(Exception):
    """A file error in the words of a shell."""


@dataclass(slots=True)
class Space:
    """Bytes and files available to a pod, or to all pods."""

    bytes_left: int = TOTAL_SPACE
    files_left: int = TOTAL_FILES
    whole: Space | None = None
    """The enclosing space."""

    def part(self) -> Space:
        """Return the space of one pod."""
        return Space(POD_SPACE, POD_FILES, self)

    def take(self, size: int, files: int) -> None:
        """Take space; negative figures release. Raises FileProblem."""
        if (size > 0 and size > self.bytes_left) or (files > 0 and files > self.files_left):
            raise FileProblem("No space left on device")
        if self.whole is not None:
            self.whole.take(size, files)
        self.bytes_left -= size
        self.files_left -= files


@dataclass(slots=True)
class _Entry:
    contents: bytes | None
    """None = a directory."""
    size: int
    """Bytes charged to the space."""
    names: set[str] = field(default_factory=set)
    """Names in a directory."""


class Files:
    """Paths are absolute and normalized. Initial files and directories are free of charge."""

    def __init__(self, space: Space, given: dict[str, bytes] | None = None) -> None:
        self._space = space
        self.missed: set[str] = set()  # the first paths that were looked up in vain
        self._entries: dict[str, _Entry] = {"/": _Entry(None, 0)}
        for path in _DIRECTORIES[1:]:
            self._add(path, _Entry(None, 0))
        for path, contents in (given or {}).items():
            self._add(path, _Entry(contents, 0))

    def is_directory(self, path: str) -> bool:
        return self._is_known(path) and self._entries[path].contents is None

    def exists(self, path: str) -> bool:
        return path == DEV_NULL or self._is_known(path)

    def _is_known(self, path: str) -> bool:
        is_known = path in self._entries
        if not is_known and len(self.missed) < _MOST_MISSED:
            self.missed.add(path[:_LONGEST_PATH])
        return is_known

    def read(self, path: str) -> bytes:
        """Return the contents of a file. Raises FileProblem."""
        if path == DEV_NULL:
            return b""
        if not self._is_known(path):
            raise FileProblem("No such file or directory")
        if (contents := self._entries[path].contents) is None:
            raise FileProblem("Is a directory")
        return contents

    def write(self, path: str, contents: bytes) -> None:
        """Write a file. Raises FileProblem, also if space is exhausted."""
        if path == DEV_NULL:
            return
        if self.is_directory(path):
            raise FileProblem("Is a directory")
        if (entry := self._entries.get(path)) is None:
            self._create(path, contents)
            return
        size = len(contents) + len(path) + _ENTRY
        self._space.take(size - entry.size, 0 if entry.size else 1)
        entry.contents, entry.size = contents, size

    def make_directory(self, path: str, *, parents: bool = False) -> None:
        """Create a directory. Raises FileProblem."""
        if path in self._entries and not (parents and self.is_directory(path)):
            raise FileProblem("File exists")
        _check_length(path)
        missing = []
        while path not in self._entries:
            missing.append(path)
            path = posixpath.dirname(path)
        if missing[1:] and not parents:
            raise FileProblem("No such file or directory")
        for directory in reversed(missing):
            self._create(directory, None)

    def _create(self, path: str, contents: bytes | None) -> None:
        _check_length(path)
        if not self.is_directory(posixpath.dirname(path)):
            raise FileProblem("No such file or directory")
        size = len(contents or b"") + len(path) + _ENTRY
        self._space.take(size, 1)
        self._add(path, _Entry(contents, size))

    def _add(self, path: str, entry: _Entry) -> None:
        directory, name = posixpath.split(path)
        self._entries[path] = entry
        self._entries[directory].names.add(name)

    def remove(self, path: str) -> int:
        """Remove a file or directory tree, and return the number of removed entries."""
        removed = [entry for entry in self.walk(path) if entry != "/"]
        for each in removed:
            entry = self._entries.pop(each)
            self._space.take(-entry.size, -1 if entry.size else 0)
        directory, name = posixpath.split(path)
        if path == "/":
            self._entries[path].names.clear()
        elif removed:
            self._entries[directory].names.discard(name)
        return len(removed)

    def walk(self, path: str) -> Iterator[str]:
        """Yield the path and all entries below, parents first."""
        pending = [path]
        while pending:
            path = pending.pop()
            if (entry := self._entries.get(path)) is not None:  # concurrent removal is possible
                pending += (posixpath.join(path, name) for name in sorted(entry.names, reverse=True))
                yield path

    def names_in(self, path: str) -> list[str]:
        return sorted(self._entries[path].names) if self._is_known(path) else []

    def release(self) -> None:
        """Release all space after the end of the container; later writes fail."""
        for entry in self._entries.values():
            self._space.take(-entry.size, -1 if entry.size else 0)
        self._entries, self._space = {"/": _Entry(None, 0)}, Space(0, 0)


def _check_length(path: str) -> None:
    if len(path) > _LONGEST_PATH or len(posixpath.basename(path)) > _LONGEST_NAME:
        raise FileProblem("File name too long")
