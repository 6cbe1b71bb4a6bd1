"""A KMS provider: polls the plugin's status, and rotates the write key when the plugin's key changes.

Writes stop three minutes after the last healthy status: the key may have been revoked.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator

from pilothouse.apiserver.storage.encryption.kms.envelope import EnvelopeTransformer, WriteKey, generate_write_key
from pilothouse.apiserver.storage.encryption.kms.service import KmsService
from pilothouse.apiserver.storage.encryption.transformer import Transformer
from pilothouse.apiserver.storage.errors import TransformFailed
from pilothouse.machinery.durations import parse_duration
from pilothouse.machinery.objects import Json

_log = logging.getLogger(__name__)

_WELL_EVERY, _ILL_EVERY = 60.0, 10.0
_WRITE_KEY_LASTS = 180.0
_NANOSECONDS = 1e9


class KmsProvider:
    def __init__(self, name: str, service: KmsService) -> None:
        self.name = name
        self.transformer: Transformer = EnvelopeTransformer(service, newest=self._newest_key, usable=self._usable_key)
        self.problem = "it has not been asked yet"
        """The current problem; empty if healthy."""
        self._service = service
        self._version = ""
        self._key: WriteKey | None = None
        self._expires = 0.0

    @classmethod
    def of(cls, config: Json) -> KmsProvider:
        """Create a provider from its configuration. Raises ValueError without gRPC."""
        try:
            import google.protobuf  # noqa: F401
            import grpc.aio  # noqa: F401
        except ImportError:
            from pilothouse.machinery.installation import extra_command

            missing = "KMS plugins are called by gRPC, which is not installed"
            raise ValueError(f"{missing}: {extra_command('kms')}") from None
        timeout = parse_duration(config.get("timeout") or "3s") / _NANOSECONDS
        return cls(config["name"], KmsService(config["endpoint"], timeout=timeout))

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await self.check()
            await asyncio.sleep(_ILL_EVERY if self.problem else _WELL_EVERY)

    async def check(self) -> None:
        """Poll the plugin. Never raises; problems are in `problem`."""
        try:
            status = await self._service.status()
            problems = list(self._status_problems(status))
            if not problems:
                key_id = status.key_id
                if self._key is None or self._key.envelope.keyID != key_id:
                    made = await generate_write_key(self._service)
                    if made.envelope.keyID != key_id:
                        hashes = f"statusKeyIDHash={_hash(key_id)}, encryptKeyIDHash={_hash(made.envelope.keyID)}"
                        raise TransformFailed(f"failed to rotate DEK, {hashes}")
                    self._key = made
                self._expires = asyncio.get_running_loop().time() + _WRITE_KEY_LASTS
        except TransformFailed as error:
            problems = [str(error)]
        self.problem = "; ".join(problems)
        if problems:
            _log.error("KMS provider %s is not healthy: %s", self.name, self.problem)

    async def close(self) -> None:
        await self._service.close()

    def _status_problems(self, status: object) -> Iterator[str]:
        version, healthz, key = (getattr(status, field) for field in ("version", "healthz", "key_id"))
        if healthz != "ok":
            yield f"got unexpected healthz status: {healthz}"
        if version not in ("v2", "v2beta1"):
            yield f"expected KMSv2 API version v2, got {version}"
        elif version != (self._version or version):
            same = f"KMSv2 API version should not change after the initial status response version {self._version}"
            yield f"{same}, got {version}"
        self._version = self._version or version
        if not key:
            yield "got invalid KMSv2 KeyID hash: keyID is empty"

    def _newest_key(self) -> WriteKey:
        if self._key is None:
            raise TransformFailed(f"KMS provider {self.name} is not healthy: {self.problem}")
        return self._key

    def _usable_key(self) -> WriteKey:
        key = self._newest_key()
        if asyncio.get_running_loop().time() > self._expires:
            raise TransformFailed(f"encryptedDEKSource with keyID hash {_hash(key.envelope.keyID)} expired")
        return key


def _hash(key_id: str) -> str:
    """Return a hash of the key id for logs; ids may reveal details of the keys."""
    return f"sha256:{hashlib.sha256(key_id.encode()).hexdigest()}"
