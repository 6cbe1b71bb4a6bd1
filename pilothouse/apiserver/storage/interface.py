"""The storage contract: etcd's model in one file. Every store passes one suite, unchanged.

There is one monotonic revision for the whole store; each write takes the next one. An entry knows the
revision that created it and the one that last modified it. Keys sort by their UTF-8 bytes.

    create(/a) → 1      update(/a, expected=1) → 2      delete(/a, expected=2) → 3
    list(/, at=2) shows /a        list(/, at=3) shows nothing        watch(/, after=1) gives update 2, delete 3
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import field
from typing import Final, Protocol, TypeAlias

from pilothouse.machinery.dataclass import dataclass

DEFAULT_ROOT: Final = "/registry"
"""The prefix of every key in the store, unless --etcd-prefix says otherwise."""

Revision: TypeAlias = int


@dataclass(frozen=True, slots=True)
class StoreCapabilities:
    """The differences between store backends that code outside of the backend depends on."""

    shared: bool
    """Other servers may use the store at the same time: servers elect leaders and keep their common keys there."""
    local: bool
    """The store consists of files that one process opens: workers reach the store through a store process."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key as one revision left it. `delete` answers the last value with `modified` set to the delete's revision."""

    key: str
    value: bytes = field(repr=False)  # may hold secrets
    created: Revision
    modified: Revision
    stale: bool = False
    """The value would be stored in another form today, so that writing it again is worth something."""


@dataclass(frozen=True, slots=True)
class Event:
    """One change. `previous` is None for a create, `entry` is None for a delete; never both."""

    revision: Revision
    key: str
    entry: Entry | None
    previous: Entry | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Events in revision order. Every event up to and including `revision` has now been delivered;
    a batch without events only says so (progress)."""

    revision: Revision
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing at `revision`, in key order. `remaining` counts the entries that follow this page."""

    entries: list[Entry]
    revision: Revision
    remaining: int = 0


class Watch(Protocol):
    """A running watch. Iteration raises Compacted when events it still owed are gone, Unavailable when the
    connection to the store is lost for good."""

    def __aiter__(self) -> AsyncIterator[Batch]: ...

    async def __anext__(self) -> Batch: ...

    async def request_progress(self) -> None:
        """Asks for a batch that says how far the watch has come, at least to the revision current now.
        A store may not answer it; callers fall back to reading the store."""

    async def aclose(self) -> None: ...


class Store(Protocol):
    """A key space with one monotonic revision, as etcd has.

    Guarantees: a write is durable when it returns; reads see every write that returned before them;
    a watch delivers every change after its revision exactly once, in revision order, or fails with Compacted.
    A write that raises did not happen, unless it raises Unavailable with `uncertain`.
    Reads, and watches of what is no longer in memory, raise Undecodable for a value that was damaged on disk.

    >>> from pilothouse.apiserver import Store
    >>> async def rename(store: Store, key: str, new: str) -> None:
    ...     entry = await store.get(key)
    ...     await store.create(new, entry.value)
    ...     await store.delete(key, expected=entry.modified)
    """

    async def get(self, key: str) -> Entry | None: ...

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        """Raises KeyExists. With a ttl in seconds the key is deleted when it runs out."""

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        """Raises KeyNotFound, RevisionConflict."""

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        """Raises KeyNotFound, RevisionConflict."""

    async def list(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        """The entries under `prefix` whose key is greater than `after`, never any other: the first `limit` of them, or
        all where that is not greater than 0. Raises Compacted, FutureRevision."""

    async def count(self, prefix: str) -> int: ...

    def watch(self, prefix: str, *, after: Revision) -> Watch:
        """Every change under `prefix` with a revision greater than `after`."""

    async def current_revision(self) -> Revision:
        """Linearizable: at least the revision of every write that returned before the call."""

    async def compact(self, revision: Revision) -> None:
        """Forgets history before `revision`; the state at `revision` itself stays readable. Raises FutureRevision."""

    async def ping(self) -> None:
        """Raises Unavailable when the store can not serve reads and durable writes right now."""

    async def close(self) -> None: ...
