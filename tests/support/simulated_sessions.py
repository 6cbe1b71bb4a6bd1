"""Commands in simulated containers of a live server, over WebSockets, and the pods for them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import aiohttp
import orjson
from patience import PATIENCE

PODS = "/api/v1/namespaces/default/pods"
_PROTOCOL = "v5.channel.k8s.io"
_STDIN, _ERROR = 0, 3
_END_OF_INPUT = b"\xff\x00"
_PIECE = 256 * 1024


class SimulatedPods:
    """A context manager: requests to the pods of a server, as its administrator."""

    def __init__(self, port: int, tls: ssl.SSLContext) -> None:
        self._url, self._tls = f"https://127.0.0.1:{port}", tls
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> SimulatedPods:
        timeout = aiohttp.ClientTimeout(PATIENCE)
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
        self._session = aiohttp.ClientSession(self._url, connector=connector, timeout=timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def create(self, name: str, **container: Any) -> None:
        """Return when the container of the pod has started, or has failed to."""
        spec = {"nodeName": "node-1", "containers": [{"name": "c", "image": "x", **container}]}
        async with self._session.post(PODS, json={"metadata": {"name": name}, "spec": spec}) as answer:
            assert answer.status == 201, await answer.text()
        await self.wait(name, lambda status: "waiting" not in status["state"])

    async def delete(self, name: str) -> None:
        async with self._session.delete(f"{PODS}/{name}?gracePeriodSeconds=0") as answer:
            assert answer.status == 200, await answer.text()

    async def status(self, name: str) -> dict[str, Any] | None:
        """Return the status of the container; None before it has one."""
        async with self._session.get(f"{PODS}/{name}") as answer:
            pod = await answer.json()
        found: dict[str, Any] | None = (pod.get("status", {}).get("containerStatuses") or [None])[0]
        return found

    async def wait(self, name: str, holds: Any) -> dict[str, Any]:
        """Return the status of the container once the condition holds."""
        async with asyncio.timeout(PATIENCE):
            while (status := await self.status(name)) is None or not holds(status):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return status

    async def log(self, name: str) -> tuple[int, bytes]:
        async with self._session.get(f"{PODS}/{name}/log") as answer:
            return answer.status, await answer.read()

    async def exec(self, name: str, command: Sequence[str], stdin: bytes = b"", *, tty: bool = False) -> int | str:
        """Return the exit code of the command, or the message of the error that it ended with."""
        socket = await self.open(name, command, tty=tty)
        try:
            writing = asyncio.create_task(_write(socket, stdin))
            status = b""
            async for message in socket:
                if message.data[0] == _ERROR:
                    status += message.data[1:]
            writing.cancel()
        finally:
            await socket.close()
        return _outcome(orjson.loads(status))

    async def open(self, name: str, command: Sequence[str], *, tty: bool = False) -> aiohttp.ClientWebSocketResponse:
        streams = {"container": "c", "stdin": "1", "stdout": "1", "tty": str(tty).lower()}
        query = urlencode([*streams.items(), *(("command", word) for word in command)])
        return await self._session.ws_connect(f"{PODS}/{name}/exec?{query}", protocols=[_PROTOCOL], max_msg_size=0)


async def _write(socket: aiohttp.ClientWebSocketResponse, stdin: bytes) -> None:
    for begin in range(0, len(stdin), _PIECE):
        await socket.send_bytes(bytes([_STDIN]) + stdin[begin : begin + _PIECE])
    await socket.send_bytes(_END_OF_INPUT)


def _outcome(status: dict[str, Any]) -> int | str:
    if status["status"] == "Success":
        return 0
    if status.get("reason") == "NonZeroExitCode":
        return int(status["details"]["causes"][0]["message"])
    return str(status.get("message"))
