"""The active encryption, with reload: a changed file takes effect once it is valid and its providers are healthy."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from pilothouse.apiserver.file_watch import poll
from pilothouse.apiserver.storage.encryption.configuration import Encryption, build_encryption, read_configuration
from pilothouse.apiserver.storage.encryption.local import Identity
from pilothouse.apiserver.storage.encryption.transformer import Plain, Transformer
from pilothouse.machinery.names import GroupResource

_log = logging.getLogger(__name__)

_LOOK_EVERY = 60.0
_IDENTITY = Identity()


class CurrentEncryption:
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
        return [f"{each.name}: {each.problem}" for each in self._encryption.providers if each.problem]

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
        if ill := [f"{each.name}: {each.problem}" for each in encryption.providers if each.problem]:
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
