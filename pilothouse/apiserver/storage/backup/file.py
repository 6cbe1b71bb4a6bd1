r"""The backup file: gzip-compressed JSON lines, readable without Pilothouse.

    {"format":"pilothouse.dev/backup","version":1,"revision":412,"prefix":"/registry","made":"2026-01-01T00:00:00Z",…}
    {"file":"pki/ca.crt","mode":420,"text":"-----BEGIN CERTIFICATE-----\\n…"}
    {"key":"/registry/namespaces/default","created":5,"modified":5,"text":"{\\"kind\\":\\"Namespace\\",…}"}
    {"key":"/registry/secrets/default/a","created":7,"modified":9,"ttl":300,"bytes":"azhzOmVuYzph…"}
    {"entries":2,"files":1,"sha256":"…"}

UTF-8 values are `text`, others base64 `bytes`. The last line has the counts and the SHA-256 of all previous lines.
Files are written and read line by line. Readers reject higher versions and ignore unknown fields.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from pilothouse.apiserver.storage.backup.model import (
    BackupError,
    SavedEntry,
    SavedFile,
    Source,
    bytes_in,
    content_of,
    entry_in,
    line_of,
)
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_periodically, yield_to_loop
from pilothouse.machinery.files import PRIVATE, written_aside

FORMAT: Final = "pilothouse.dev/backup"
VERSION: Final = 1

_FAST: Final = 1  # gzip level; higher levels take several times as long and save a few percent
_LINES_BETWEEN_TURNS: Final = 200


class NotABackup(BackupError):
    """The file is not a valid backup; the message names the file and the problem."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is no backup that can be used: {reason}")


@dataclass(frozen=True, slots=True)
class Written:
    entries: int
    files: int


async def write_backup(path: Path, source: Source, files: Iterable[SavedFile], *, made: str) -> Written:
    """Write the source to the file atomically, readable by the owner only.

    Raises StorageError or OSError.
    """
    head = {"format": FORMAT, "version": VERSION, "revision": source.revision, "prefix": source.prefix, "made": made}
    with (
        written_aside(path, mode=PRIVATE) as file,
        gzip.GzipFile(fileobj=file, mode="wb", compresslevel=_FAST, mtime=0) as out,
    ):
        lines = _Lines(out)
        lines.write(head)
        kept = entries = 0
        for each in files:
            kept += 1
            lines.write({"file": each.path, "mode": each.mode, **content_of(each.content)})
        async for entry in source.entries():
            entries += 1
            lines.write(line_of(entry))
            if entries % _LINES_BETWEEN_TURNS == 0:
                await yield_to_loop()
        out.write(orjson.dumps({"entries": entries, "files": kept, "sha256": lines.digest()}) + b"\n")
    return Written(entries, kept)


class BackupFile:
    """A verified backup file; implements Source."""

    def __init__(self, path: Path) -> None:
        """Read and verify the whole file. Raises NotABackup or OSError."""
        self._path = path
        head, self.written = _examined(path)
        self.revision: Revision = head["revision"]
        self.prefix: str = head["prefix"]
        self.made: str = head.get("made", "")

    async def entries(self) -> AsyncIterator[SavedEntry]:
        async for line in yield_periodically(_objects(self._path), every=_LINES_BETWEEN_TURNS):
            if "key" in line:
                yield entry_in(line)

    async def newest(self) -> Revision:
        return self.revision

    def files(self) -> Iterator[SavedFile]:
        for line in _objects(self._path):
            if "file" in line:
                yield SavedFile(line["file"], line["mode"], bytes_in(line))
            elif "key" in line:
                return


class _Lines:
    """Writes lines, and maintains their checksum."""

    def __init__(self, out: gzip.GzipFile) -> None:
        self._out = out
        self._hash = hashlib.sha256()

    def write(self, line: dict[str, Any]) -> None:
        data = orjson.dumps(line) + b"\n"
        self._hash.update(data)
        self._out.write(data)

    def digest(self) -> str:
        return self._hash.hexdigest()


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rb") as file:
        for line in file:
            yield orjson.loads(line)


def _examined(path: Path) -> tuple[dict[str, Any], Written]:
    """Return the head and the counts of the file. Raises NotABackup or OSError."""
    try:
        return _read_through(path)
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError, KeyError, TypeError) as error:
        raise NotABackup(path, f"{error}" or "it was cut off") from None


def _read_through(path: Path) -> tuple[dict[str, Any], Written]:
    digest, last, lines = hashlib.sha256(), b"", 0
    with gzip.open(path, "rb") as file:
        first = file.readline()
        head = _head(path, first)
        last = first
        for line in file:
            digest.update(last)
            last, lines = line, lines + 1
    end = orjson.loads(last)
    if not lines or not isinstance(end, dict) or "sha256" not in end:
        raise NotABackup(path, "its last line is missing: it was cut off")
    if end["sha256"] != digest.hexdigest() or end["entries"] + end["files"] != lines - 1:
        raise NotABackup(path, "its content is not what its checksum was made of")
    return head, Written(end["entries"], end["files"])


def _head(path: Path, line: bytes) -> dict[str, Any]:
    head = orjson.loads(line)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise NotABackup(path, f"its first line does not say {FORMAT}")
    if (found := head["version"]) > VERSION:
        raise NotABackup(path, f"it has version {found}, this Pilothouse reads up to {VERSION}: use a newer one")
    return head
