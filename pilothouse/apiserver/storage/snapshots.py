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
from typing import Any, Final, TypeAlias

from pilothouse.apiserver.storage.cacher.cachers import cachers_of
from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict, Unavailable
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Entry, Revision, Store
from pilothouse.machinery.dataclass import dataclass

_MOST_ROUNDS: Final = 20
"""A write of somebody else that comes between the look and our own takes one more round."""

_HEARTBEATS: Final = ("/leases/kube-node-lease/", "/leases/kube-system/apiserver-", "/masterleases/")
"""Keys that somebody alive renews all the time. To set them back would say that nobody had."""

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

    @property
    def size(self) -> int:
        """The bytes of all values."""
        return sum(len(entry.value) for entry in self.entries.values())


class Snapshots:
    """Saves and restores what one store has under `root`.

    `lifetimes` are the seconds for which keys under these prefixes (behind the root) live: one that has gone since, and
    comes back, lives as long as a new one.
    """

    def __init__(self, store: Store, *, root: str = DEFAULT_ROOT, lifetimes: Mapping[str, int] | None = None) -> None:
        self.store = store
        self._root = root
        self._lifetimes = {root + prefix: seconds for prefix, seconds in (lifetimes or {}).items()}
        self._heartbeats = tuple(root + prefix for prefix in _HEARTBEATS)
        self._one_at_a_time = asyncio.Lock()

    async def save(self) -> StoredSnapshot:
        """Return the state at the current revision."""
        page = await self.store.list(f"{self._root}/")
        return StoredSnapshot(page.revision, {entry.key: entry for entry in page.entries})

    async def restore(self, snapshot: StoredSnapshot) -> Revision:
        """Make the state that of the snapshot and return the revision at which it is.

        When it returns, all watch caches have it, watches of before have ended as after a compaction, and lists and
        watches at older revisions are refused. Raises StorageError.
        """
        async with self._one_at_a_time:
            await self._write_back(snapshot)
            revision = await self.store.current_revision()
            await asyncio.gather(*(cacher.expire(revision) for cacher in list(cachers_of(self.store))))
            await self.store.compact(revision)
            return revision

    async def _write_back(self, snapshot: StoredSnapshot) -> None:
        for _ in range(_MOST_ROUNDS):
            page = await self.store.list(f"{self._root}/")
            writes = list(self._writes(snapshot, page.entries))
            if not writes:
                return
            _raise_but_conflicts(await asyncio.gather(*writes, return_exceptions=True))
        raise Unavailable("others write faster than the snapshot can be restored")

    def _writes(self, snapshot: StoredSnapshot, current: Sequence[Entry]) -> Iterator[_Write]:
        """What comes back is written first, so that who depends on it is not there without it."""
        now = {entry.key: entry for entry in current}
        for key, past in snapshot.entries.items():
            if (entry := now.get(key)) is None:
                yield self.store.create(key, past.value, ttl=self._lifetime(key))
            elif entry.modified != past.modified and entry.value != past.value and not key.startswith(self._heartbeats):
                yield self.store.update(key, past.value, expected=entry.modified, ttl=self._lifetime(key))
        for key, entry in now.items():
            if key not in snapshot.entries:
                yield self.store.delete(key, expected=entry.modified)

    def _lifetime(self, key: str) -> int:
        return next((seconds for prefix, seconds in self._lifetimes.items() if key.startswith(prefix)), 0)


def _raise_but_conflicts(outcomes: Sequence[Entry | BaseException]) -> None:
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, (KeyExists, KeyNotFound, RevisionConflict)):
            raise outcome
