"""The stores that the suite runs on.

To add one, write a Backend and name it in BACKENDS; every test of the suite then runs on it, unchanged.
"""

from __future__ import annotations

import socket
import uuid
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from etcd_backend import connect, emptied_etcd
from store_clock import ManualClock

from pilothouse.apiserver.storage.delegating import DelegatingStore
from pilothouse.apiserver.storage.etcd.store import EtcdStore
from pilothouse.apiserver.storage.interface import Store
from pilothouse.apiserver.storage.remote.revisions import SharedRevisions
from pilothouse.apiserver.storage.remote.server import StoreSession
from pilothouse.apiserver.storage.remote.store import RemoteStore
from pilothouse.apiserver.storage.sqlite.store import SqliteStore


class Backend(ABC):
    """A place that keeps data. Nothing compacts it but the suite."""

    name: str
    location: str  # enough to find the place again, from another process too
    answers_progress = True  # whether a watch that is asked for progress always tells it

    def __init__(self, location: str) -> None:
        self.location = location

    @classmethod
    @abstractmethod
    def create(cls, scratch: Path) -> Backend:
        """A new place without any keys. `scratch` is a directory that may hold it."""

    @abstractmethod
    async def open(self) -> Store:
        """May be called again when the store was closed, or when the process that had it open was killed."""

    @abstractmethod
    async def let_expire(self, seconds: int) -> None:
        """Lets that much time pass for the keys that have a time to live. They may go a little later."""


class _OnSqlite(Backend):
    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.clock = ManualClock()

    @classmethod
    def create(cls, scratch: Path) -> Self:
        return cls(str(scratch / uuid.uuid4().hex))

    async def let_expire(self, seconds: int) -> None:
        self.clock.advance(seconds)


class SqliteBackend(_OnSqlite):
    name = "sqlite"

    async def open(self) -> SqliteStore:
        return await SqliteStore.open(Path(self.location), clock=self.clock, compaction_interval=0)


class EtcdBackend(Backend):
    name = "etcd"

    @classmethod
    def create(cls, scratch: Path) -> EtcdBackend:
        return cls(emptied_etcd())

    async def open(self) -> EtcdStore:
        return await connect(self.location)

    async def let_expire(self, seconds: int) -> None:
        """etcd lives by the real time, so whoever waits for the delete waits for it."""


class RemoteBackend(_OnSqlite):
    """The embedded store as workers see it, over a socket. Here both ends are in one process and on one event loop."""

    name = "remote"

    async def open(self) -> Store:
        revisions = SharedRevisions()
        embedded = await SqliteStore.open(
            Path(self.location), clock=self.clock, compaction_interval=0, announce=revisions.announce
        )
        ours, theirs = socket.socketpair()
        session = StoreSession(embedded)
        await session.open(theirs)
        return _WithItsServer(await RemoteStore.connect(ours, revisions), embedded)


class _WithItsServer(DelegatingStore):
    """Closes the embedded store along with the remote one."""

    def __init__(self, store: Store, embedded: Store) -> None:
        super().__init__(store)
        self._embedded = embedded

    async def close(self) -> None:
        await self._store.close()
        await self._embedded.close()


BACKENDS: dict[str, type[Backend]] = {backend.name: backend for backend in (SqliteBackend, EtcdBackend, RemoteBackend)}
