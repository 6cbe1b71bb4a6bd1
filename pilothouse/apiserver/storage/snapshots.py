"""Snapshots of the key space at one revision, and their restore.

A snapshot holds the entries, which are immutable and shared with the store: saving copies nothing. A restore writes the
differences, so revisions only rise and every watch cache follows by events:

    snapshot  a@1 b@2 c@3        now  a@1 b@7 d@8        restore  update b, create c, delete d

Unchanged keys are recognized by revision. History is compacted afterwards: watchers get 410 and list again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import field
from typing import Any, Final, Protocol, TypeAlias

from pilothouse.apiserver.storage.cacher.cacher import cachers_of
from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Entry, Revision, Store
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_to_loop

_MOST_ROUNDS: Final = 20
"""A concurrent write costs another round."""

_HEARTBEATS: Final = ("/leases/kube-node-lease/", "/leases/kube-system/apiserver-", "/masterleases/")
"""Heartbeat keys; restoring them would make live holders look dead."""

_OF_THE_SERVERS: Final = ("/pilothouse.dev/sharedkeys/",)
"""Keys outside of the state, never restored: retired keys would be trusted again."""

_TURNS_TO_ACT: Final = 30
"""Event loop turns for a change to pass through an informer to its handlers."""

_Write: TypeAlias = Coroutine[Any, Any, Entry]


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """Every key under the root of a store as `revision` left it.

    >>> from pilothouse.testing import StoredSnapshot, server
    >>> async with server() as api:
    ...     start: StoredSnapshot = await api.snapshot()
    ...     print(start.size < 10_000_000)
    True
    """

    revision: Revision
    entries: Mapping[str, Entry]
    origin: Store | None = field(repr=False)
    """The store of the revisions. Other stores can be restored to this state, too."""

    @property
    def size(self) -> int:
        """Size of all values in bytes."""
        return sum(len(entry.value) for entry in self.entries.values())


class Bystanders(Protocol):
    """Components of this process that act on the state and must not act on a stale one."""

    def held(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that pauses the components during a restore."""

    def taken_away(self, entries: Sequence[Entry]) -> None:
        """Called with the removed entries."""


class Snapshots:
    """Saves and restores the keys of one store under `root`.

    `lifetimes`: prefix (behind the root) → TTL in seconds, for restored keys that have expired.
    """

    def __init__(self, store: Store, *, root: str = DEFAULT_ROOT, lifetimes: Mapping[str, int] | None = None) -> None:
        self.store = store
        self.root = root
        self._lifetimes = {root + prefix: seconds for prefix, seconds in (lifetimes or {}).items()}
        self._left_alone = tuple(root + prefix for prefix in (*_HEARTBEATS, *_OF_THE_SERVERS))
        self._one_at_a_time = asyncio.Lock()
        self.bystanders: Bystanders | None = None

    async def save(self) -> StoredSnapshot:
        """Return the state at the current revision."""
        page = await self.store.list(f"{self.root}/")
        return StoredSnapshot(page.revision, {entry.key: entry for entry in page.entries}, self.store)

    async def restore(self, snapshot: StoredSnapshot) -> Revision:
        """Restore the snapshot, and return the new revision.

        On return, all watch caches have the state, older watches have ended as after a compaction, and older revisions
        are refused. Raises StorageError.
        """
        async with self._one_at_a_time, self.bystanders.held() if self.bystanders else nullcontext():
            taken_away = await self._write_back(snapshot)
            if self.bystanders:
                self.bystanders.taken_away(taken_away)
            revision = await self.store.current_revision()
            cachers = list(cachers_of(self.store))
            await asyncio.gather(*(cacher.expire(revision) for cacher in cachers))
            await self.store.compact(revision)
            # Wait until all followers in this process have received every change and had time to act.
            left, turns = -1, _TURNS_TO_ACT
            while turns:
                behind = sum(cacher.followers_behind for cacher in cachers)
                left, turns = behind, turns - 1 if behind == left else _TURNS_TO_ACT
                await yield_to_loop()
            return revision

    async def _write_back(self, snapshot: StoredSnapshot) -> list[Entry]:
        """Write the differences, and return the removed entries.

        A component that reacts to every restored key, such as a controller that writes a status, wins after the last
        round: its writes count as later than the restore.
        """
        taken_away: list[Entry] = []
        for _ in range(_MOST_ROUNDS):
            page = await self.store.list(f"{self.root}/")
            writes = list(self._writes(snapshot, page.entries))
            if not writes:
                break
            taken_away += [entry for entry in page.entries if entry.key not in snapshot.entries]
            outcomes = await asyncio.gather(*writes, return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, BaseException) and not isinstance(
                    outcome, (KeyExists, KeyNotFound, RevisionConflict)
                ):
                    raise outcome
        return taken_away

    def _writes(self, snapshot: StoredSnapshot, current: Sequence[Entry]) -> Iterator[_Write]:
        """Yield the writes; creates come first, so that dependents never precede their dependencies."""
        now = {entry.key: entry for entry in current}
        for key, past in snapshot.entries.items():
            if (entry := now.get(key)) is None:
                yield self.store.create(key, past.value, ttl=self.lifetime(key))
            elif not self._is_as_it_was(entry, past, snapshot.origin):
                yield self.store.update(key, past.value, expected=entry.modified, ttl=self.lifetime(key))
        for key, entry in now.items():
            if key not in snapshot.entries:
                yield self.store.delete(key, expected=entry.modified)

    def _is_as_it_was(self, entry: Entry, past: Entry, origin: Store | None) -> bool:
        if entry.modified == past.modified and origin is self.store:
            return True
        return entry.value == past.value or entry.key.startswith(self._left_alone)

    def lifetime(self, key: str) -> int:
        """Return the TTL of a new key; 0 = unlimited."""
        return next((seconds for prefix, seconds in self._lifetimes.items() if key.startswith(prefix)), 0)
