"""The files of a container, in memory. All containers together have a bounded amount of space."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Final

from pilothouse.machinery.dataclass import dataclass

CONTAINER_SPACE: Final = 16 * 1024 * 1024
TOTAL_SPACE: Final = 128 * 1024 * 1024
_ENTRY: Final = 512
"""What a file or a directory takes besides its contents."""
_DIRECTORIES: Final = ("/", "/bin", "/dev", "/etc", "/home", "/root", "/tmp", "/usr", "/var", "/var/log")
DEV_NULL: Final = "/dev/null"


class FileProblem(Exception):
    """Says in the words of a shell why a file cannot be read or written."""


@dataclass(slots=True)
class Space:
    """The bytes that all containers have together."""

    left: int = TOTAL_SPACE


class Files:
    """Paths are absolute. Directories are entries without contents."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._used = 0
        self._entries: dict[str, bytes | None] = dict.fromkeys(_DIRECTORIES)

    def is_directory(self, path: str) -> bool:
        return path in self._entries and self._entries[path] is None

    def exists(self, path: str) -> bool:
        return path in self._entries or path == DEV_NULL

    def read(self, path: str) -> bytes:
        """Raises FileProblem."""
        if path == DEV_NULL:
            return b""
        if path not in self._entries:
            raise FileProblem("No such file or directory")
        if (contents := self._entries[path]) is None:
            raise FileProblem("Is a directory")
        return contents

    def write(self, path: str, contents: bytes) -> None:
        """Raises FileProblem, also where there is no room."""
        if path == DEV_NULL:
            return
        if self.is_directory(path):
            raise FileProblem("Is a directory")
        if not self.is_directory(posixpath.dirname(path)):
            raise FileProblem("No such file or directory")
        before = len(self._entries[path] or b"") + _ENTRY if path in self._entries else 0
        self._take(len(contents) + _ENTRY - before)
        self._entries[path] = contents

    def make_directory(self, path: str, *, parents: bool = False) -> None:
        """Raises FileProblem."""
        if path in self._entries:
            if parents and self.is_directory(path):
                return
            raise FileProblem("File exists")
        above = posixpath.dirname(path)
        if parents and above not in self._entries:
            self.make_directory(above, parents=True)
        if not self.is_directory(above):
            raise FileProblem("No such file or directory")
        self._take(_ENTRY)
        self._entries[path] = None

    def remove(self, path: str) -> None:
        """Removes the file, or the directory with all in it."""
        for each in [*self.walk(path)]:
            self._take(-len(self._entries.pop(each) or b"") - _ENTRY)

    def walk(self, path: str) -> Iterator[str]:
        """Yield the path and all that is below it, parents first."""
        below = "/" if path == "/" else f"{path}/"
        return (each for each in sorted(self._entries) if each == path or each.startswith(below))

    def names_in(self, path: str) -> list[str]:
        return [
            posixpath.basename(each) for each in self.walk(path) if each != path and posixpath.dirname(each) == path
        ]

    def release(self) -> None:
        """Gives back the space of a container that is gone."""
        self._space.left += self._used
        self._used = 0
        self._entries.clear()

    def _take(self, size: int) -> None:
        if size > 0 and (self._used + size > CONTAINER_SPACE or size > self._space.left):
            raise FileProblem("No space left on device")
        self._used += size
        self._space.left -= size
