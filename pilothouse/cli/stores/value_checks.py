"""Decode stored values: JSON, protobuf, CBOR, encrypted or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from pilothouse.apiserver.storage.backup.model import SavedEntry
from pilothouse.apiserver.storage.encryption.configuration import Encryption
from pilothouse.apiserver.storage.encryption.transformer import Transformer
from pilothouse.apiserver.storage.errors import TransformFailed, Undecodable
from pilothouse.apiserver.storage.json_view import MAGIC, from_protobuf
from pilothouse.machinery.cbor.wellformed import SELF_DESCRIBED
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

ENCRYPTED: Final = b"k8s:enc:"
STORAGE_PATHS: Final = {
    "minions": "nodes",
    "services/specs": "services",
    "services/endpoints": "endpoints",
    "controllers": "replicationcontrollers",
    "ingress": "ingresses",
}
"""Key path -> resource, for resources with a historical path."""


class Encrypted(Exception):
    """The value is encrypted and no configuration is given."""


class ValueReader:
    """Decodes the values of entries. Encrypted values need a configuration."""

    def __init__(self, encryption: Encryption | None, prefix: str) -> None:
        self._encryption = encryption
        self._prefix = prefix

    async def object(self, entry: SavedEntry) -> Json:
        """Return the object of an entry. Raises Encrypted, TransformFailed, Undecodable."""
        value = entry.value
        if value.startswith(ENCRYPTED):
            value = await self._decrypted(entry)
        return decoded(entry.key, value)

    async def _decrypted(self, entry: SavedEntry) -> bytes:
        if self._encryption is None:
            raise Encrypted
        failure = TransformFailed("the configuration does not list this resource")
        for transformer in self._transformers(entry.key):
            try:
                return (await transformer.from_storage(entry.value, entry.key.encode())).value
            except TransformFailed as error:
                failure = error
        raise failure

    def _transformers(self, key: str) -> Iterator[Transformer]:
        """Yield the transformers that may have written the value. A key does not always name its API group."""
        assert self._encryption is not None
        plural = resource_in(key, self._prefix)
        for group in {"", *(transformer.group for transformer in self._encryption.transformers)} - {"*"}:
            if (transformer := self._encryption.of(GroupResource(group, plural))) is not None:
                yield transformer


def decoded(key: str, value: bytes) -> Json:
    """Decode an unencrypted value. Raises Undecodable."""
    if value.startswith(MAGIC):
        return from_protobuf(key, value)
    try:
        obj = _from_cbor(value) if value.startswith(SELF_DESCRIBED) else orjson.loads(value)
    except ValueError as error:
        raise Undecodable(str(error)) from error
    if not isinstance(obj, dict):
        raise Undecodable("the value is not an object")
    return obj


def resource_in(key: str, prefix: str) -> str:
    """Return the resource (plural) of a key."""
    words = key.removeprefix(prefix + "/").split("/")
    for path in ("/".join(words[:2]), words[0]):
        if path in STORAGE_PATHS:
            return STORAGE_PATHS[path]
    return words[1] if "." in words[0] and len(words) > 1 else words[0]


def _from_cbor(value: bytes) -> object:
    from pilothouse.machinery.cbor.decoding import decode

    return decode(value)
