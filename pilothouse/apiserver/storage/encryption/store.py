"""Transparent encryption of a store.

`EncryptingStore` wraps the whole store and hands out an encrypted view per resource.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from pilothouse.apiserver.file_watch import poll
from pilothouse.apiserver.storage.delegating import DelegatingStore, DelegatingWatch, ResourceViews
from pilothouse.apiserver.storage.encryption.configuration import Encryption, build_encryption, read_configuration
from pilothouse.apiserver.storage.encryption.local import Identity
from pilothouse.apiserver.storage.encryption.transformer import Plain, Transformer
from pilothouse.apiserver.storage.errors import TransformFailed
from pilothouse.apiserver.storage.interface import Batch, Entry, Event, Page, Revision, Store, Watch
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource


class EncryptingStore(DelegatingStore, ResourceViews):
    """Runs the KMS providers until closed."""

    def __init__(self, store: Store, encryption: CurrentEncryption) -> None:
        super().__init__(store)
        self.encryption = encryption
        self._running = asyncio.ensure_future(encryption.run())

    @classmethod
    async def open(cls, store: Store, encryption: CurrentEncryption) -> EncryptingStore:
        await encryption.start()
        return cls(store, encryption)

    def of(self, resource: GroupResource) -> Store:
        transformer = self.encryption.of(resource)
        return self._store if transformer is None else EncryptedStore(self._store, transformer)

    def provider_problems(self) -> list[str] | None:
        return self.encryption.problems() if self.encryption.has_providers else None

    async def close(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        await self.encryption.close()
        await super().close()


class EncryptedStore(DelegatingStore):
    """A view of one resource, with values passed through `transformer`."""

    def __init__(self, store: Store, transformer: Transformer) -> None:
        super().__init__(store)
        self._transformer = transformer

    async def get(self, key: str) -> Entry | None:
        entry = await self._store.get(key)
        return None if entry is None else await self._plain(entry)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        entry = await self._store.create(key, await self._encrypted(key, value), ttl=ttl)
        return replace(entry, value=value)

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        entry = await self._store.update(key, await self._encrypted(key, value), expected=expected, ttl=ttl)
        return replace(entry, value=value)

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        return await self._plain(await self._store.delete(key, expected=expected))

    async def list(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        page = await self._store.list(prefix, at=at, after=after, limit=limit)
        return replace(page, entries=[await self._plain(entry) for entry in page.entries])

    def watch(self, prefix: str, *, after: Revision) -> Watch:
        return _EncryptedWatch(self._store.watch(prefix, after=after), self._plain)

    async def _encrypted(self, key: str, value: bytes) -> bytes:
        try:
            return await self._transformer.to_storage(value, key.encode())
        except TransformFailed as error:
            raise TransformFailed(f"unable to transform key {quote(key)}: {error}") from error

    async def _plain(self, entry: Entry) -> Entry:
        try:
            plain = await self._transformer.from_storage(entry.value, entry.key.encode())
        except TransformFailed as error:
            raise TransformFailed(f"unable to transform key {quote(entry.key)}: {error}") from error
        return replace(entry, value=plain.value, stale=plain.stale)


class _EncryptedWatch(DelegatingWatch):
    def __init__(self, watch: Watch, plain: Callable[[Entry], Awaitable[Entry]]) -> None:
        super().__init__(watch)
        self._plain = plain

    async def _transformed(self, batch: Batch) -> Batch:
        return replace(batch, events=tuple([await self._event(event) for event in batch.events]))

    async def _event(self, event: Event) -> Event:
        entry = await self._plain(event.entry) if event.entry is not None else None
        previous = await self._plain(event.previous) if event.previous is not None else None
        return replace(event, entry=entry, previous=previous)


_log = logging.getLogger(__name__)

_LOOK_EVERY = 60.0
_IDENTITY = Identity()


class CurrentEncryption:
    """The active encryption, with reload: a changed file takes effect once it is valid and its providers are
    healthy.
    """

    def __init__(self, path: Path, *, reload: bool = False) -> None:
        """Raises OSError or ValueError."""
        self._path = path
        self._reload = reload
        self._config = read_configuration(path)
        self._encryption = build_encryption(self._config)

    def of(self, resource: GroupResource) -> Transformer | None:
        return _Following(lambda: self._encryption, resource) if self._reload else self._encryption.of(resource)

    async def start(self) -> None:
        """Check every provider once, so that the first write has a key."""
        await _check(self._encryption)

    async def run(self) -> None:
        """Keep the providers' keys current, and follow the file, until cancelled."""
        while True:
            async with asyncio.TaskGroup() as watching:
                asking = [watching.create_task(provider.run()) for provider in self._encryption.providers]
                await poll(self._reloaded, every=_LOOK_EVERY)
                for task in asking:
                    task.cancel()

    async def close(self) -> None:
        for provider in self._encryption.providers:
            await provider.close()

    @property
    def has_providers(self) -> bool:
        """Whether providers exist or may appear after a reload."""
        return self._reload or bool(self._encryption.providers)

    def problems(self) -> list[str]:
        """Return the problems of the providers, with their names."""
        return [f"{kms.name}: {kms.problem}" for kms in self._encryption.providers if kms.problem]

    async def _reloaded(self) -> bool:
        return self._reload and await self.look()

    async def look(self) -> bool:
        """Read the file again, and return whether a new configuration took effect."""
        try:
            config = await asyncio.to_thread(read_configuration, self._path)
            if config == self._config:
                return False
            encryption = build_encryption(config)
        except (OSError, ValueError) as error:
            _log.error("the encryption configuration stays as it was: %s", error)
            return False
        await _check(encryption)
        if ill := [f"{kms.name}: {kms.problem}" for kms in encryption.providers if kms.problem]:
            _log.error("the encryption configuration stays as it was: %s", "; ".join(ill))
            return False
        await self.close()
        self._config, self._encryption = config, encryption
        return True


class _Following:
    """The transformer of a resource in the configuration active at each call."""

    def __init__(self, encryption: Callable[[], Encryption], resource: GroupResource) -> None:
        self._encryption = encryption
        self._resource = resource
        self._known: Encryption | None = None
        self._transformer: Transformer = _IDENTITY

    async def to_storage(self, value: bytes, key: bytes) -> bytes:
        return await self._now().to_storage(value, key)

    async def from_storage(self, stored: bytes, key: bytes) -> Plain:
        return await self._now().from_storage(stored, key)

    def _now(self) -> Transformer:
        current = self._encryption()
        if current is not self._known:
            self._known, self._transformer = current, current.of(self._resource) or _IDENTITY
        return self._transformer


async def _check(encryption: Encryption) -> None:
    await asyncio.gather(*(provider.check() for provider in encryption.providers))
