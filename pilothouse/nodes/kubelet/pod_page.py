"""A small HTTP server on every port of every simulated pod, which describes the pod."""

from __future__ import annotations

from typing import Final, Protocol

from pilothouse.kinds.pods import node_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of, text

_MAX_HEAD: Final = 64 * 1024
_MAX_BODY: Final = 64 * 1024 * 1024


def pod_page(pod: Json, port: int, method: str, path: str) -> bytes:
    """Return the response text of the pod."""
    address = text(pod, "status", "podIP")
    node = node_name(pod)
    page = {
        "pod": f"{namespace_of(pod)}/{name_of(pod)}",
        "node": node,
        "address": f"{address}:{port}",
        "request": f"{method} {path}",
    }
    return "".join(f"{name}: {value}\n" for name, value in page.items()).encode()


class ByteStream(Protocol):
    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...


@dataclass(slots=True)
class PodServer:
    """An HTTP/1.1 server on one connection."""

    pod: Json
    port: int
    stream: ByteStream
    received: bytes = b""

    async def run(self) -> None:
        """Serve until the client has no more requests. Raises OSError if the client disconnects."""
        while (head := await self._head()) is not None:
            first, *lines = head.decode("latin-1").split("\r\n")
            method, _, rest = first.partition(" ")
            pairs = (line.partition(":") for line in lines)
            headers = {name.strip().lower(): value.strip().lower() for name, _, value in pairs}
            goes_on = await self._drop_body(headers) and headers.get("connection") != "close"
            await self._answer(method, rest.rpartition(" ")[0], goes_on=goes_on and first.endswith("HTTP/1.1"))
            if not goes_on:
                return

    async def _head(self) -> bytes | None:
        while b"\r\n\r\n" not in self.received:
            if len(self.received) > _MAX_HEAD or not (data := await self.stream.read()):
                return None
            self.received += data
        head, _, self.received = self.received.partition(b"\r\n\r\n")
        return head

    async def _drop_body(self, headers: dict[str, str]) -> bool:
        """Skip the body; return False for bodies of unknown or excessive length."""
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not length.isdecimal() or int(length) > _MAX_BODY:
            return False
        remaining = int(length)
        while remaining:
            data = self.received or await self.stream.read()
            if not data:
                return False
            self.received = data[remaining:]
            remaining -= min(remaining, len(data))
        return True

    async def _answer(self, method: str, path: str, *, goes_on: bool) -> None:
        body = pod_page(self.pod, self.port, method, path)
        head = (
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: {'keep-alive' if goes_on else 'close'}\r\n\r\n"
        )
        await self.stream.write(head.encode() + (b"" if method == "HEAD" else body))
