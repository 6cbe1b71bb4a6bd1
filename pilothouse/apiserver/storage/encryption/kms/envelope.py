"""Envelope encryption: data under a local key, stored with the plugin-encrypted key.

Every value has its own key: HKDF of one seed and 32 random bytes, stored before the data. Decrypted keys are cached, so
reads call the plugin for unknown keys only.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from pilothouse.apiserver.storage.encryption.kms.messages import message
from pilothouse.apiserver.storage.encryption.kms.service import KmsService
from pilothouse.apiserver.storage.encryption.local import TOO_SHORT, AesGcm
from pilothouse.apiserver.storage.encryption.metrics import CACHE_MISSES, KEY_GENERATION
from pilothouse.apiserver.storage.encryption.transformer import Plain, Transformer
from pilothouse.apiserver.storage.errors import TransformFailed
from pilothouse.machinery.dataclass import dataclass
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
        why = f"annotations: Invalid value: {wrong[0]}: should be a domain with at least two segments separated by dots"
        raise TransformFailed(f"failed to validate annotations: {why}")
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
        envelope = _decoded(stored)
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


def _decoded(stored: bytes) -> Any:
    from google.protobuf.message import DecodeError

    try:
        envelope = message("EncryptedObject").FromString(stored)
    except DecodeError as error:
        raise TransformFailed(f"proto: {error}") from None
    if not envelope.encryptedData:
        raise TransformFailed("encrypted data is empty")
    validate_envelope(envelope)
    return envelope


def _fingerprint(envelope: Any) -> bytes:
    """Return a fingerprint of the key, equal for all its values."""
    bare = message("EncryptedObject")()
    bare.CopyFrom(envelope)
    bare.encryptedData = b""
    return hashlib.sha256(bare.SerializeToString(deterministic=True)).digest()
