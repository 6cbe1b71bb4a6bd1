"""From a stored value to its object, whatever form it is kept in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from pilothouse.apiserver.storage.backup.model import SavedEntry
from pilothouse.apiserver.storage.encryption.configuration import Encryption
from pilothouse.apiserver.storage.encryption.transformer import Transformer
from pilothouse.apiserver.storage.errors import TransformFailed, Undecodable
from pilothouse.apiserver.storage.protobuf import MAGIC, from_protobuf
from pilothouse.machinery.cbor.wire import SELF_DESCRIBED
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

ENCRYPTED: Final = b"k8s:enc:"
PATHS: Final = {
    "minions": "nodes",
    "services/specs": "services",
    "services/endpoints": "endpoints",
    "controllers": "replicationcontrollers",
    "ingress": "ingresses",
}
"""Where objects are kept elsewhere than under the name of their resource."""


class Encrypted(Exception):
    """Nobody has said how it can be decrypted."""


class ValueReader:
    """Reads values; encrypted ones where there is a configuration."""

    def __init__(self, encryption: Encryption | None, prefix: str) -> None:
        self._encryption = encryption
        self._prefix = prefix

    async def object(self, entry: SavedEntry) -> Json:
        """Raises Encrypted, TransformFailed, Undecodable."""
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
        """Those that may have written the value: the path of a key does not always tell the group."""
        assert self._encryption is not None
        plural = resource_in(key, self._prefix)
        for group in {"", *(each.group for each in self._encryption.transformers)} - {"*"}:
            if (found := self._encryption.of(GroupResource(group, plural))) is not None:
                yield found


def decoded(key: str, value: bytes) -> Json:
    """Raises Undecodable."""
    if value.startswith(MAGIC):
        return from_protobuf(key, value)
    try:
        found = _from_cbor(value) if value.startswith(SELF_DESCRIBED) else orjson.loads(value)
    except ValueError as error:
        raise Undecodable(str(error)) from error
    if not isinstance(found, dict):
        raise Undecodable("the value is not an object")
    return found


def resource_in(key: str, prefix: str) -> str:
    """The plural of the resource whose objects live around the key."""
    words = key.removeprefix(prefix + "/").split("/")
    for path in ("/".join(words[:2]), words[0]):
        if path in PATHS:
            return PATHS[path]
    return words[1] if "." in words[0] and len(words) > 1 else words[0]


def _from_cbor(value: bytes) -> object:
    from pilothouse.machinery.cbor.decoding import decode

    return decode(value)
