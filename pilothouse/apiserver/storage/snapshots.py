"""The whole key space as it was at one revision, and the way back to it.

A snapshot holds the entries themselves, which are immutable and shared with the store: taking one copies nothing.
Going back is ordinary writes of what differs, so revisions only rise, and every watch cache follows by events:

    snapshot  a@1 b@2 c@3        now  a@1 b@7 d@8        restore  update b, create c, delete d

Unchanged keys are known by their revision and cost nothing. Behind it the past is compacted: who watches is told that
the revision is gone, and lists again, as after any compaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import field
from typing import Any, Final, Protocol, TypeAlias

from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.cacher.cachers import cachers_of
from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict, Unavailable
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Entry, Revision, Store
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_to_loop

_MOST_ROUNDS: Final = 20
"""A write of somebody else that comes between the look and our own takes one more round."""

_HEARTBEATS: Final = ("/leases/kube-node-lease/", "/leases/kube-system/apiserver-", "/masterleases/")
"""Keys that somebody alive renews all the time. To set them back would say that nobody had."""

_OF_THE_SERVERS: Final = ("/pilothouse.dev/sharedkeys/",)
"""Keys that are no part of the state, and never go back: what was retired would be trusted again."""

_TURNS_TO_ACT: Final = 30
"""Turns of the event loop in which a change that was told passes through an informer to those who wait for it."""

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
    """Where the revisions of the entries mean something. Another store can go to this state, too."""

    @property
    def size(self) -> int:
        """The bytes of all values."""
        return sum(len(entry.value) for entry in self.entries.values())


class Bystanders(Protocol):
    """Those in this process who act upon the state, and must not act upon one that is no more."""

    def held(self) -> AbstractAsyncContextManager[None]:
        """Return what holds them back while the state is replaced and they hear of it."""

    def taken_away(self, entries: Sequence[Entry]) -> None:
        """Hear which entries are gone."""


class Snapshots:
    """Saves and restores what one store has under `root`.

    `lifetimes` are the seconds for which keys under these prefixes (behind the root) live: one that has gone since, and
    comes back, lives as long as a new one.
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
        """Make the state that of the snapshot and return the revision at which it is.

        When it returns, all watch caches have it, watches of before have ended as after a compaction, and lists and
        watches at older revisions are refused. Raises StorageError.
        """
        async with self._one_at_a_time, self.bystanders.held() if self.bystanders else nullcontext():
            taken_away = await self._write_back(snapshot)
            if self.bystanders:
                self.bystanders.taken_away(taken_away)
            revision = await self.store.current_revision()
            cachers = list(cachers_of(self.store))
            await asyncio.gather(*(cacher.expire(revision) for cacher in cachers))
            await self.store.compact(revision)
            await _all_told(cachers)
            return revision

    async def _write_back(self, snapshot: StoredSnapshot) -> list[Entry]:
        """Return what it took away."""
        taken_away: list[Entry] = []
        for _ in range(_MOST_ROUNDS):
            page = await self.store.list(f"{self.root}/")
            writes = list(self._writes(snapshot, page.entries))
            if not writes:
                return taken_away
            taken_away += [entry for entry in page.entries if entry.key not in snapshot.entries]
            outcomes = await asyncio.gather(*writes, return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, BaseException) and not isinstance(
                    outcome, (KeyExists, KeyNotFound, RevisionConflict)
                ):
                    raise outcome
        raise Unavailable("others write faster than the snapshot can be restored")

    def _writes(self, snapshot: StoredSnapshot, current: Sequence[Entry]) -> Iterator[_Write]:
        """What comes back is written first, so that who depends on it is not there without it."""
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
        """The seconds for which a new key lives; 0 for ever."""
        return next((seconds for prefix, seconds in self._lifetimes.items() if key.startswith(prefix)), 0)


async def _all_told(cachers: Sequence[Cacher]) -> None:
    """Returns when those in this process who follow the caches have taken every change, and had time to act on it."""
    left, turns = -1, _TURNS_TO_ACT
    while turns:
        behind = sum(cacher.followers_behind for cacher in cachers)
        left, turns = behind, turns - 1 if behind == left else _TURNS_TO_ACT
        await yield_to_loop()
