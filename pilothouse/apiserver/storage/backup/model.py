"""The model of backups: sources and targets.

    backup   a store → a file        restore   a file → an empty store        migrate   a store → an empty store

A `Source` yields entries in stored form, encrypted values encrypted. A `Target` stores all entries or stays empty. Each
entry gets a revision above any that clients may have seen, so older watches end with 410 and list again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import field
from typing import Protocol

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
