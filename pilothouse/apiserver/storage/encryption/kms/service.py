"""The gRPC client of a KMS plugin."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pilothouse.apiserver.storage.encryption.kms.messages import message
from pilothouse.apiserver.storage.errors import PluginCallFailed

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
