"""Envelope encryption with a KMS plugin: data under a local key, stored with the plugin-encrypted key.

Every value has its own key: HKDF of one seed and 32 random bytes, stored before the data. Decrypted keys are cached, so
reads call the plugin for unknown keys only. The provider polls the plugin's status, and rotates the write key when the
plugin's key changes. Writes stop three minutes after the last healthy status: the key may have been revoked.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from pilothouse.apiserver.storage.encryption.kms_service import KmsService, message
from pilothouse.apiserver.storage.encryption.local import TOO_SHORT, AesGcm
from pilothouse.apiserver.storage.encryption.transformer import CACHE_MISSES, KEY_GENERATION, Plain, Transformer
from pilothouse.apiserver.storage.errors import TransformFailed
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import parse_duration
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_dns1123_subdomain

SEED_SIZE = 32
_INFO_SIZE = 32
_KEPT_KEYS = 1000
_LONGEST = 1024
_LONGEST_ANNOTATIONS = 32 * 1024
AES_GCM_KEY, SEED = 0, 1


class ExtendedNonceGcm:
    def __init__(self, seed: bytes) -> None:
        if len(seed) < SEED_SIZE:
            raise TransformFailed(f"invalid seed length {len(seed)} used for key generation")
        self._seed = seed

    async def to_storage(self, value: bytes, key: bytes) -> bytes:
        info = os.urandom(_INFO_SIZE)
        return info + await self._derived(info).to_storage(value, key)

    async def from_storage(self, stored: bytes, key: bytes) -> Plain:
        if len(stored) < _INFO_SIZE:
            raise TransformFailed(TOO_SHORT)
        return await self._derived(stored[:_INFO_SIZE]).from_storage(stored[_INFO_SIZE:], key)

    def _derived(self, info: bytes) -> AesGcm:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

        return AesGcm(HKDFExpand(SHA256(), length=32, info=info).derive(self._seed))


@dataclass(frozen=True, slots=True)
class WriteKey:
    """The key for writes until the plugin reports a key change."""

    transformer: Transformer
    envelope: Any
    """An EncryptedObject without data."""


async def generate_write_key(service: KmsService) -> WriteKey:
    """Generate a key and encrypt it with the plugin. Raises TransformFailed."""
    start = time.perf_counter()
    seed = os.urandom(SEED_SIZE)
    KEY_GENERATION.observe((), time.perf_counter() - start)
    try:
        answer = await service.encrypt(seed, str(uuid.uuid4()))
    except TransformFailed as error:
        raise TransformFailed(f"failed to encrypt DEK, error: {error}") from error
    envelope = message("EncryptedObject")(
        keyID=answer.key_id,
        encryptedDEKSource=answer.ciphertext,
        annotations=dict(answer.annotations),
        encryptedDEKSourceType=SEED,
    )
    validate_envelope(envelope)
    return WriteKey(ExtendedNonceGcm(seed), envelope)


def validate_envelope(envelope: Any) -> None:
    """Validate the plugin's answer, which is stored with every object."""
    if envelope.encryptedDEKSourceType not in (AES_GCM_KEY, SEED):
        raise TransformFailed(f"unknown encryptedDEKSourceType: {envelope.encryptedDEKSourceType}")
    _validate_size("encrypted DEK source", envelope.encryptedDEKSource)
    _validate_size("keyID", envelope.keyID.encode())
    if wrong := [name for name in envelope.annotations if "." not in name or is_dns1123_subdomain(name)]:
        reason = (
            f"annotations: Invalid value: {wrong[0]}: should be a domain with at least two segments separated by dots"
        )
        raise TransformFailed(f"failed to validate annotations: {reason}")
    if (size := sum(len(name) + len(value) for name, value in envelope.annotations.items())) > _LONGEST_ANNOTATIONS:
        raise TransformFailed(
            f"total size of annotations is {size}, which exceeds the max size of {_LONGEST_ANNOTATIONS}"
        )


def _validate_size(name: str, value: bytes) -> None:
    if not value:
        raise TransformFailed(f"{name} is empty")
    if len(value) > _LONGEST:
        raise TransformFailed(f"{name} is {len(value)} bytes, which exceeds the max size of {_LONGEST}")


class EnvelopeTransformer:
    def __init__(self, service: KmsService, *, newest: Callable[[], WriteKey], usable: Callable[[], WriteKey]) -> None:
        """Both callables raise TransformFailed without a key; `usable` also if the newest key has expired."""
        self._service = service
        self._newest = newest
        self._usable = usable
        self._keys: OrderedDict[bytes, Transformer] = OrderedDict()  # LRU: most recently used last

    async def to_storage(self, value: bytes, key: bytes) -> bytes:
        current = self._usable()
        envelope = message("EncryptedObject")()
        envelope.CopyFrom(current.envelope)
        self._keep(_fingerprint(envelope), current.transformer)
        envelope.encryptedData = await current.transformer.to_storage(value, key)
        return bytes(envelope.SerializeToString())

    async def from_storage(self, stored: bytes, key: bytes) -> Plain:
        from google.protobuf.message import DecodeError

        try:
            envelope = message("EncryptedObject").FromString(stored)
        except DecodeError as error:
            raise TransformFailed(f"proto: {error}") from None
        if not envelope.encryptedData:
            raise TransformFailed("encrypted data is empty")
        validate_envelope(envelope)
        fingerprint = _fingerprint(envelope)
        transformer = self._keys.get(fingerprint) or await self._decrypted(envelope)
        self._keep(fingerprint, transformer)
        plain = await transformer.from_storage(envelope.encryptedData, key)
        current = self._newest().envelope
        is_current = (envelope.keyID, envelope.encryptedDEKSourceType) == (
            current.keyID,
            current.encryptedDEKSourceType,
        )
        return Plain(plain.value, plain.stale or not is_current)

    async def _decrypted(self, envelope: Any) -> Transformer:
        CACHE_MISSES.inc()
        try:
            secret = await self._service.decrypt(envelope, str(uuid.uuid4()))
        except TransformFailed as error:
            raise TransformFailed(f"failed to decrypt DEK, error: {error}") from error
        return ExtendedNonceGcm(secret) if envelope.encryptedDEKSourceType == SEED else AesGcm(secret)

    def _keep(self, fingerprint: bytes, transformer: Transformer) -> None:
        self._keys[fingerprint] = transformer
        self._keys.move_to_end(fingerprint)
        if len(self._keys) > _KEPT_KEYS:
            self._keys.popitem(last=False)


def _fingerprint(envelope: Any) -> bytes:
    """Return a fingerprint of the key, equal for all its values."""
    bare = message("EncryptedObject")()
    bare.CopyFrom(envelope)
    bare.encryptedData = b""
    return hashlib.sha256(bare.SerializeToString(deterministic=True)).digest()


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
                    write_key = await generate_write_key(self._service)
                    if write_key.envelope.keyID != key_id:
                        hashes = f"statusKeyIDHash={_hash(key_id)}, encryptKeyIDHash={_hash(write_key.envelope.keyID)}"
                        raise TransformFailed(f"failed to rotate DEK, {hashes}")
                    self._key = write_key
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
