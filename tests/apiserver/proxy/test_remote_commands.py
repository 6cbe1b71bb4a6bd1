"""Sessions that are asked for over SPDY, from something that stands for a kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from patience import PATIENCE

from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.proxy.remote_command import RemoteCommand, SessionStreams
from pilothouse.apiserver.spdy.connection import SpdyConnection
from pilothouse.apiserver.spdy.stream import SpdyStream
from pilothouse.machinery.server_errors import InternalError

EXIT = {"reason": "NonZeroExitCode", "status": "Failure"}
V4 = "v4.channel.k8s.io"


class Kubelet:
    """Takes each session, writes `said` as its end, and closes it."""

    def __init__(self, said: bytes, protocol: str, answer: bytes) -> None:
        self.said, self.protocol, self.answer = said, protocol, answer
        self.asked = b""
        self.streams: dict[str, SpdyStream] = {}
        self.is_open = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked = await reader.readuntil(b"\r\n\r\n")
        if self.answer:
            writer.write(self.answer)
            writer.close()
            return
        head = (
            f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: {self.protocol}\r\n"
        )
        writer.write(f"{head}Connection: Upgrade\r\n\r\n".encode())
        connection = SpdyConnection(reader, writer, serves=True, accept=self._accept)
        running = asyncio.create_task(connection.run())
        await self.is_open.wait()
        await self.streams["stdout"].write(b"out")
        await self.streams["error"].write(self.said)
        connection.close()
        await running

    def _accept(self, stream: SpdyStream) -> None:
        self.streams[stream.header("streamtype")] = stream
        if "stdout" in self.streams:
            self.is_open.set()


@asynccontextmanager
async def kubelet(
    said: bytes = b"", *, protocol: str = V4, answer: bytes = b""
) -> AsyncIterator[tuple[Kubelet, Target]]:
    double = Kubelet(said, protocol, answer)
    server = await asyncio.start_server(double.serve, "127.0.0.1", 0)
    try:
        async with asyncio.timeout(PATIENCE):
            yield double, Target("127.0.0.1", server.sockets[0].getsockname()[1], "/exec/ns/pod/c", "command=x")
    finally:
        server.close()


ENDS: list[tuple[bytes, str, str]] = [
    (b"", V4, ""),
    (b'{"status":"Success"}', V4, ""),
    (
        orjson.dumps(EXIT | {"details": {"causes": [{"reason": "ExitCode", "message": "3"}]}}),
        V4,
        "command terminated with non-zero exit code: command terminated with exit code 3",
    ),
    (b'{"status":"Failure","message":"no luck"}', V4, "Internal error occurred: no luck"),
    (orjson.dumps(EXIT), V4, "Internal error occurred: error stream protocol error: details must be set"),
    (
        orjson.dumps(EXIT | {"details": {}}),
        V4,
        "Internal error occurred: error stream protocol error: no ExitCode cause given",
    ),
    (
        orjson.dumps(EXIT | {"details": {"causes": [{"reason": "ExitCode", "message": "x"}]}}),
        V4,
        'Internal error occurred: error stream protocol error: invalid exit code value "x"',
    ),
    (b"[]", V4, "Internal error occurred: error stream protocol error: unknown error"),
    (b"broken", "v2.channel.k8s.io", "Internal error occurred: error executing remote command: broken"),
]


@pytest.mark.parametrize(("said", "protocol", "message"), ENDS)
async def test_the_end_of_a_session_is_a_status(said: bytes, protocol: str, message: str) -> None:
    wanted = SessionStreams(stdout=True)
    async with kubelet(said, protocol=protocol) as (double, target), RemoteCommand(target, wanted) as session:
        assert session.stdout is not None
        assert await session.stdout.read() == b"out"
        status: Any = await session.status()
    assert (status["status"], status.get("message", "")) == ("Failure" if message else "Success", message)
    assert double.asked.startswith(b"POST /exec/ns/pod/c?command=x HTTP/1.1\r\n")


async def test_an_end_that_is_no_json_is_an_internal_error() -> None:
    async with kubelet(b"{") as (_, target), RemoteCommand(target, SessionStreams(stdout=True)) as session:
        status: Any = await session.status()
    assert status["message"].startswith("Internal error occurred: error stream protocol error: ")
    assert status["code"] == 500


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"container not found", "container not found"),
        (b'{"message":"no pod"}', "no pod"),
        (b"", "empty server response"),
    ],
)
async def test_a_refusal_says_what_the_kubelet_said(body: bytes, why: str) -> None:
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    async with kubelet(answer=answer) as (_, target):
        with pytest.raises(InternalError, match=f"unable to upgrade connection: {why}"):
            async with RemoteCommand(target, SessionStreams(stdout=True)):
                pass
