"""The storage contract: etcd's model in one file. Every store passes the same test suite.

The store has one monotonic revision; each write takes the next. An entry has the revisions of its creation and last
modification. Keys sort by UTF-8 bytes.

    create(/a) → 1      update(/a, expected=1) → 2      delete(/a, expected=2) → 3
    list(/, at=2) shows /a        list(/, at=3) shows nothing        watch(/, after=1) gives update 2, delete 3
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import field
from typing import Final, Protocol, TypeAlias

from pilothouse.apiserver.storage.errors import TooLarge
from pilothouse.machinery.dataclass import dataclass

DEFAULT_ROOT: Final = "/registry"
"""Prefix of every key, unless --etcd-prefix is set."""

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
    """A key at one revision. `delete` returns the last value, with `modified` set to the revision of the delete."""

    key: str
    value: bytes = field(repr=False)  # may hold secrets
    created: Revision
    modified: Revision
    stale: bool = False
    """The value would be stored in another form now; rewriting it is useful."""


@dataclass(frozen=True, slots=True)
class Event:
    """A change. `previous` is None for a create, `entry` is None for a delete."""

    revision: Revision
    key: str
    entry: Entry | None
    previous: Entry | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Events in revision order. Every event up to and including `revision` has been delivered; an empty batch reports
    progress."""

    revision: Revision
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing at `revision`, in key order. `remaining` counts the entries behind this page."""

    entries: list[Entry]
    revision: Revision
    remaining: int = 0


class Watch(Protocol):
    """A running watch. Iteration raises Compacted if undelivered events are gone, and Unavailable if the store is lost
    for good."""

    def __aiter__(self) -> AsyncIterator[Batch]: ...

    async def __anext__(self) -> Batch: ...

    async def request_progress(self) -> None:
        """Request a batch with at least the current revision. A store may not answer; callers then read the store."""

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
        """Create the key. With a TTL in seconds, the key is deleted after its expiry. Raises KeyExists."""

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        """Update the key at the expected revision. Raises KeyNotFound or RevisionConflict."""

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        """Delete the key at the expected revision. Raises KeyNotFound or RevisionConflict."""

    async def list(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        """Return the entries under `prefix` with keys greater than `after`: the first `limit`, or all if `limit` is not
        positive. Raises Compacted or FutureRevision."""

    async def count(self, prefix: str) -> int: ...

    def watch(self, prefix: str, *, after: Revision) -> Watch:
        """Watch every change under `prefix` after the revision."""

    async def current_revision(self) -> Revision:
        """Return the current revision, linearizable: at least the revision of every write that returned before the
        call."""

    async def compact(self, revision: Revision) -> None:
        """Drop history before `revision`; the state at `revision` stays readable. Raises FutureRevision."""

    async def ping(self) -> None:
        """Raise Unavailable if the store cannot serve reads and durable writes now."""

    async def close(self) -> None: ...


MAX_MESSAGE: Final = 2 * 1024 * 1024
MAX_REQUEST: Final = 3 * 512 * 1024

_FRAME: Final = 32
"""Overhead of a compared and written key with its value."""


def check_message_size(key: str, value: bytes) -> None:
    """Raise TooLarge for messages that upstream's client refuses to send."""
    size = 2 * len(key) + len(value) + _FRAME
    if size > MAX_MESSAGE:
        why = f"trying to send message larger than max ({size} vs. {MAX_MESSAGE})"
        raise TooLarge(f"rpc error: code = ResourceExhausted desc = {why}")


def check_request_size(key: str, value: bytes) -> None:
    """Raise TooLarge for requests that etcd refuses by default."""
    check_message_size(key, value)
    if 2 * len(key) + len(value) + _FRAME > MAX_REQUEST:
        raise TooLarge
