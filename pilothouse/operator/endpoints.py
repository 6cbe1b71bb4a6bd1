"""HTTP endpoints of a manager: /healthz, /readyz and /metrics, on a small HTTP/1.1 server without dependencies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeAlias

from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

logger = logging.getLogger(__name__)

MAX_HEAD = 64 * 1024
MAX_BODY = 64 * 1024
IDLE_TIMEOUT = 90.0

Check: TypeAlias = Callable[[], None]
"""Health check: raises an exception with the reason if unhealthy."""


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    method: str
    path: str


@dataclass(frozen=True, slots=True)
class EndpointResponse:
    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


EndpointHandler: TypeAlias = Callable[[EndpointRequest], Awaitable[EndpointResponse]]


class EndpointServer:
    """HTTP/1.1 server with keep-alive for probes and scrapes. Bodies are ignored; chunked bodies are refused."""

    def __init__(self, handler: EndpointHandler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError if the port is in use."""
        self._server = await asyncio.start_server(self._connected, host or None, port, limit=MAX_HEAD)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and end all connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, EOFError, ValueError, TimeoutError, asyncio.LimitOverrunError) as error:
            logger.debug("connection ended: %s", error)
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; report whether the connection stays open."""
        async with asyncio.timeout(IDLE_TIMEOUT):
            head = await reader.readuntil(b"\r\n\r\n")
            request_line, *lines = head.decode("latin-1").split("\r\n")
            method, target, protocol = request_line.split(" ")
            headers = {
                name.strip().lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines)
                if name
            }
            length = int(headers.get("content-length") or 0)
            if "transfer-encoding" in headers or not 0 <= length <= MAX_BODY:
                await _write(
                    writer, EndpointResponse(HTTPStatus.LENGTH_REQUIRED, b"a Content-Length is required\n"), close=True
                )
                return False
            await reader.readexactly(length)
        request = EndpointRequest(method, target.partition("?")[0])
        try:
            response = await self._handler(request)
        except Exception:
            logger.exception("endpoint %s failed", request.path)
            response = EndpointResponse(HTTPStatus.INTERNAL_SERVER_ERROR, b"internal error\n")
        close = protocol == "HTTP/1.0" or headers.get("connection", "").lower() == "close"
        await _write(writer, response, close=close, head_only=method == "HEAD")
        return not close


async def _write(
    writer: asyncio.StreamWriter, response: EndpointResponse, *, close: bool, head_only: bool = False
) -> None:
    status = HTTPStatus(response.status)
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: {response.content_type}\r\n"
        f"content-length: {len(response.body)}\r\n{'connection: close' + chr(13) + chr(10) if close else ''}\r\n"
    )
    writer.write(head.encode("latin-1") + (b"" if head_only else response.body))
    await writer.drain()


class HealthEndpoints:
    """Handler of /healthz, /readyz and /metrics. `checks` are named; `/healthz/<name>` runs one check."""

    def __init__(self, registry: CollectorRegistry, *, healthz: dict[str, Check], readyz: dict[str, Check]) -> None:
        self._registry = registry
        self._checks = {"healthz": healthz, "readyz": readyz}

    async def __call__(self, request: EndpointRequest) -> EndpointResponse:
        if request.method not in ("GET", "HEAD"):
            return EndpointResponse(HTTPStatus.METHOD_NOT_ALLOWED, b"use GET\n")
        endpoint, _, name = request.path.strip("/").partition("/")
        if endpoint == "metrics" and not name:
            from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

            return EndpointResponse(HTTPStatus.OK, generate_latest(self._registry), CONTENT_TYPE_LATEST)
        checks = self._checks.get(endpoint)
        if checks is None or (name and name not in checks):
            return EndpointResponse(HTTPStatus.NOT_FOUND, b"404 page not found\n")
        return _checked(endpoint, {name: checks[name]} if name else checks)


def _checked(endpoint: str, checks: Mapping[str, Check]) -> EndpointResponse:
    lines, healthy = [], True
    for name, check in checks.items():
        try:
            check()
            lines.append(f"[+]{name} ok")
        except Exception as error:
            healthy = False
            lines.append(f"[-]{name} failed: {error}")
    if healthy:
        return EndpointResponse(HTTPStatus.OK, b"ok")
    lines.append(f"{endpoint} check failed")
    return EndpointResponse(HTTPStatus.INTERNAL_SERVER_ERROR, "\n".join(lines).encode() + b"\n")


def parse_address(address: str) -> tuple[str, int]:
    """Return host and port of "host:port" or ":port". Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise ValueError(f'{address!r} is not an address: write "127.0.0.1:8080" or ":8080"')
    return host.strip("[]"), int(port)
