"""A KMS v2 plugin on a real Unix socket. Its keys are in memory, and the newest of them encrypts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from pilothouse.apiserver.storage.encryption.kms_service import message


class KmsPlugin:
    def __init__(self, socket: Path) -> None:
        self.endpoint = f"unix://{socket}"
        self.key_id = "key-1"
        self.healthz = "ok"
        self.decrypted = 0
        self._plain: dict[bytes, bytes] = {}
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers([self._handlers()])
        self._server.add_insecure_port(f"unix:{socket}")

    async def __aenter__(self) -> KmsPlugin:
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(None)

    def _handlers(self) -> grpc.GenericRpcHandler:
        methods = {
            name: grpc.unary_unary_rpc_method_handler(
                getattr(self, f"_{name.lower()}"),
                request_deserializer=message(f"{name}Request").FromString,
                response_serializer=lambda answer: answer.SerializeToString(),
            )
            for name in ("Status", "Encrypt", "Decrypt")
        }
        return grpc.method_handlers_generic_handler("v2.KeyManagementService", methods)

    async def _status(self, request: Any, context: Any) -> Any:
        return message("StatusResponse")(version="v2", healthz=self.healthz, key_id=self.key_id)

    async def _encrypt(self, request: Any, context: Any) -> Any:
        ciphertext = f"{self.key_id}/{len(self._plain)}".encode()
        self._plain[ciphertext] = request.plaintext
        annotations = {"version.example.com": b"1"}
        return message("EncryptResponse")(ciphertext=ciphertext, key_id=self.key_id, annotations=annotations)

    async def _decrypt(self, request: Any, context: Any) -> Any:
        self.decrypted += 1
        assert dict(request.annotations) == {"version.example.com": b"1"}
        return message("DecryptResponse")(plaintext=self._plain[request.ciphertext])
