"""The model of backups: sources and targets.

    backup   a store → a file        restore   a file → an empty store        migrate   a store → an empty store

A `Source` yields entries in stored form, encrypted values encrypted. A `Target` stores all entries or stays empty. Each
entry gets a revision above any that clients may have seen, so older watches end with 410 and list again.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import field
from typing import Any, Protocol

from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.machinery.dataclass import dataclass


class BackupError(StorageError):
    """A refused backup operation; the message has the reason and the remedy."""


class NotEmpty(BackupError):
    """The target has entries; entries of two stores are never mixed."""

    def __init__(self, where: str, keys: int) -> None:
        super().__init__(
            f"{where} has {keys} keys: only an empty store is restored into, so that nothing is lost or mixed"
        )


@dataclass(frozen=True, slots=True)
class SavedEntry:
    """A stored key. `ttl`: remaining seconds; 0 = unlimited."""

    key: str
    value: bytes = field(repr=False)  # may hold secrets
    created: Revision
    modified: Revision
    ttl: int = 0


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file of the data directory, such as a certificate or key."""

    path: str
    """Relative to the directory, with slashes."""
    mode: int
    content: bytes = field(repr=False)


class Source(Protocol):
    """A store or file at `revision`."""

    revision: Revision
    prefix: str

    def entries(self) -> AsyncIterator[SavedEntry]:
        """Yield every entry under the prefix at the revision once. Raises Compacted if the store dropped the
        revision."""

    async def newest(self) -> Revision:
        """Return the store's current revision, which reveals concurrent writes."""


class Target(Protocol):
    """An empty store."""

    async def fill(self, source: Source, *, at_least: Revision) -> Revision:
        """Store all entries of the source or none, each at a revision greater than `at_least`. Return the store's
        revision, up to which history is compacted. Raises NotEmpty or StorageError."""


def entry_in(line: dict[str, Any]) -> SavedEntry:
    """Parse an entry. Raises KeyError or ValueError for malformed lines."""
    return SavedEntry(line["key"], bytes_in(line), line["created"], line["modified"], line.get("ttl", 0))


def line_of(entry: SavedEntry) -> dict[str, Any]:
    line: dict[str, Any] = {"key": entry.key, "created": entry.created, "modified": entry.modified}
    if entry.ttl:
        line["ttl"] = entry.ttl
    return line | content_of(entry.value)


def content_of(value: bytes) -> dict[str, str]:
    try:
        return {"text": value.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(value).decode()}


def bytes_in(line: dict[str, Any]) -> bytes:
    return str(line["text"]).encode() if "text" in line else base64.b64decode(line["bytes"])
