"""The gRPC client of a KMS v2 plugin, with protobuf messages built from field numbers."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import urlsplit

from pilothouse.apiserver.storage.errors import PluginCallFailed

_STRING, _BYTES, _MESSAGE, _ENUM = 9, 12, 11, 14
_OPTIONAL, _REPEATED = 1, 3

_FIELDS: dict[str, list[tuple[str, int, int]]] = {
    "StatusRequest": [],
    "StatusResponse": [("version", 1, _STRING), ("healthz", 2, _STRING), ("key_id", 3, _STRING)],
    "EncryptRequest": [("plaintext", 1, _BYTES), ("uid", 2, _STRING)],
    "EncryptResponse": [("ciphertext", 1, _BYTES), ("key_id", 2, _STRING), ("annotations", 3, _MESSAGE)],
    "DecryptRequest": [
        ("ciphertext", 1, _BYTES),
        ("uid", 2, _STRING),
        ("key_id", 3, _STRING),
        ("annotations", 4, _MESSAGE),
    ],
    "DecryptResponse": [("plaintext", 1, _BYTES)],
    "EncryptedObject": [
        ("encryptedData", 1, _BYTES),
        ("keyID", 2, _STRING),
        ("encryptedDEKSource", 3, _BYTES),
        ("annotations", 4, _MESSAGE),
        ("encryptedDEKSourceType", 5, _ENUM),
    ],
}


@cache
def message(name: str) -> Any:
    """Return the message class of this name."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"v2.{name}"))


@cache
def _pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    file = descriptor_pb2.FileDescriptorProto(name="pilothouse/kms.proto", package="v2", syntax="proto3")
    kinds = file.enum_type.add(name="EncryptedDEKSourceType")
    kinds.value.add(name="AES_GCM_KEY", number=0)
    kinds.value.add(name="HKDF_SHA256_XNONCE_AES_GCM_SEED", number=1)
    for name, fields in _FIELDS.items():
        _describe(file.message_type.add(name=name), fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _describe(described: Any, fields: list[tuple[str, int, int]]) -> None:
    for name, number, kind in fields:
        field = described.field.add(name=name, number=number, type=kind, label=_OPTIONAL)
        if kind == _ENUM:
            field.type_name = ".v2.EncryptedDEKSourceType"
        elif kind == _MESSAGE:
            field.label, field.type_name = _REPEATED, f".v2.{described.name}.AnnotationsEntry"
            entry = described.nested_type.add(name="AnnotationsEntry")
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, type=_STRING, label=_OPTIONAL)
            entry.field.add(name="value", number=2, type=_BYTES, label=_OPTIONAL)


_SERVICE = "/v2.KeyManagementService/"
_LARGEST_ANSWER = 1 << 20


class KmsService:
    """Connects on first use, and reconnects after failures."""

    def __init__(self, endpoint: str, *, timeout: float) -> None:
        self._socket = urlsplit(endpoint).path or urlsplit(endpoint).netloc
        self._timeout = timeout
        self._channel: Any = None

    async def status(self) -> Any:
        """Return the plugin's status. All calls raise TransformFailed."""
        return await self._call("Status", message("StatusRequest")())

    async def encrypt(self, plaintext: bytes, uid: str) -> Any:
        return await self._call("Encrypt", message("EncryptRequest")(plaintext=plaintext, uid=uid))

    async def decrypt(self, encrypted: Any, uid: str) -> bytes:
        request = message("DecryptRequest")(
            ciphertext=encrypted.encryptedDEKSource,
            uid=uid,
            key_id=encrypted.keyID,
            annotations=dict(encrypted.annotations),
        )
        answer = await self._call("Decrypt", request)
        return bytes(answer.plaintext)

    async def _call(self, method: str, request: Any) -> Any:
        import grpc

        call = self._opened().unary_unary(
            _SERVICE + method,
            request_serializer=lambda sent: sent.SerializeToString(),
            response_deserializer=message(f"{method}Response").FromString,
        )
        try:
            return await call(request, timeout=self._timeout)
        except grpc.RpcError as error:
            code, details = error.code(), error.details()
            go_code = "".join(part.capitalize() for part in code.name.split("_"))
            raise PluginCallFailed(go_code, f"rpc error: code = {code.name} desc = {details}") from None

    def _opened(self) -> Any:
        import grpc.aio

        if self._channel is None:
            options = [("grpc.max_receive_message_length", _LARGEST_ANSWER), ("grpc.default_authority", "localhost")]
            self._channel = grpc.aio.insecure_channel(f"unix:{self._socket}", options=options)
        return self._channel

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None
