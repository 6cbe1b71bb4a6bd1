"""Forwarding of upgrades: after the handshake, bytes are copied until either side closes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from pilothouse.apiserver.head_fields import InvalidHead, check_request
from pilothouse.apiserver.http import Headers, Request, Response
from pilothouse.apiserver.outbound.failures import DialFailed
from pilothouse.apiserver.outbound.reaching import reach
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.serving.upgrade import raw_connection, until_one_ends
from pilothouse.apiserver.tallies import REGISTRY, CounterTally
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.status_error import StatusError

_CHUNK = 64 * 1024
_MAX_HEAD = 64 * 1024
SWITCHING = 101
_NOT_FORWARDED = frozenset({b"authorization", b"content-length", b"transfer-encoding"})
"""The client's credentials are for this server only; the other headers are hop-specific."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The response to an upgrade request, with its connection; data after the response is unread."""

    status: int
    headers: Headers
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def is_switched(self) -> bool:
        return self.status == SWITCHING

    def header(self, name: bytes) -> str:
        return next((value.decode("latin-1") for each, value in self.headers if each == name), "")

    async def beginning(self) -> bytes:
        """Return the bounded beginning of a refusal's body, and close the connection."""
        length = self.header(b"content-length")
        try:
            if length.isascii() and length.isdigit():
                return await self.reader.readexactly(min(int(length), _CHUNK))
            return await self.reader.read(_CHUNK)
        except asyncio.IncompleteReadError as error:
            return error.partial
        finally:
            self.writer.close()


async def forward_upgrade(request: Request, target: Target, headers: Headers | None = None) -> Response:
    """Forward the upgrade with the request's headers or the given headers. Refusals of the backend are passed on.
    Raises StatusError if the backend is unreachable or the request is invalid."""
    sent = forwarded_headers(request) if headers is None else headers
    answer = await ask_for_upgrade(request.method, target, sent)
    if answer.is_switched:
        return Response(SWITCHING, headers=answer.headers, upgrade=_Tunnel(answer.reader, answer.writer).run)
    return await refusal_of(answer)


async def ask_for_upgrade(method: str, target: Target, headers: Headers) -> Upgraded:
    """Return the target's response. Raises StatusError if the target is unreachable or the request is invalid."""
    head = _head(method, target, headers)
    reader, writer = await _dial(target)
    try:
        writer.write(head)
        async with asyncio.timeout(target.timeout):
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            status_line, *lines = head[:-4].split(b"\r\n")
            pairs = (line.partition(b":") for line in lines)
            headers = [(name.strip().lower(), value.strip()) for name, _, value in pairs]
            words = status_line.split(b" ", 2)
            if len(words) < 2 or not words[1].isdigit():
                raise OSError(f"malformed HTTP response {status_line.decode('latin-1')!r}")
            return Upgraded(int(words[1]), headers, reader, writer)
    except TimeoutError:
        writer.close()
        raise StatusError("error sending request: timeout awaiting response headers") from None
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        writer.close()
        raise StatusError(f"error sending request: {error or 'EOF'}") from None
    except BaseException:
        writer.close()
        raise


async def _dial(target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await reach(target, _open)
    except DialFailed as error:
        raise StatusError(f"error dialing backend: {error}") from None


async def _open(place: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    name = place.server_name or place.host if place.tls else None
    return await asyncio.open_connection(
        place.connect_host, place.connect_port, ssl=place.tls, server_hostname=name, limit=_MAX_HEAD
    )


def forwarded_headers(request: Request) -> Headers:
    kept = [(name, value) for name, value in request.headers if name not in _NOT_FORWARDED]
    if request.client is not None:
        earlier = [value for name, value in kept if name == b"x-forwarded-for"]
        kept = [(name, value) for name, value in kept if name != b"x-forwarded-for"]
        kept.append((b"x-forwarded-for", b", ".join([*earlier, request.client[0].encode()])))
    return kept


def _head(method: str, target: Target, headers: Headers) -> bytes:
    """Build the request head. Raises StatusError."""
    verb, resource = method.encode(), target.resource.encode()
    try:
        check_request(verb, resource, headers)
    except InvalidHead as error:
        raise StatusError(f"error sending request: {error}") from None
    return b"\r\n".join([b"%b %b HTTP/1.1" % (verb, resource), *(b"%b: %b" % pair for pair in headers), b"", b""])


async def refusal_of(answer: Upgraded) -> Response:
    """Return the backend's refusal. Raises StatusError for a response that is neither a switch nor an error."""
    if answer.status < 400:
        answer.writer.close()
        raise StatusError(f"invalid upgrade response: status code {answer.status}")
    kept = [(name, value) for name, value in answer.headers if name == b"content-type"]
    return Response(answer.status, await answer.beginning(), kept)


@dataclass(frozen=True, slots=True)
class _Tunnel:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def run(self, transport: asyncio.Transport, early: bytes) -> None:
        """Run until either side closes, then close the other."""
        client = raw_connection(transport, early)
        try:
            await until_one_ends(_pump(client.reader, self.writer), _pump(self.reader, client.writer))
        finally:
            self.writer.close()
            client.writer.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()


HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
CORS = frozenset(b"access-control-allow-" + name for name in (b"credentials", b"headers", b"methods", b"origin"))
"""CORS headers of the backend, dropped: this server alone decides about cross-origin access."""


def forwarded_for(request: Request) -> Headers:
    """Return X-Forwarded-For with the peer's address appended; empty without a known peer."""
    if request.client is None:
        return []
    earlier = [value for name, value in request.headers if name == b"x-forwarded-for"]
    return [(b"x-forwarded-for", b", ".join([*earlier, request.client[0].encode()]))]


TRANSLATED = CounterTally(
    "apiserver_stream_translator_requests",
    "[ALPHA] Total number of requests that were handled by the StreamTranslatorProxy, which processes streaming "
    "RemoteCommand/V5",
    ("code",),
    registry=REGISTRY,
)
TUNNELED = CounterTally(
    "apiserver_stream_tunnel_requests",
    "[ALPHA] Total number of requests that were handled by the StreamTunnelProxy, which processes streaming "
    "PortForward/V2",
    ("code",),
    registry=REGISTRY,
)
WEBSOCKETS = CounterTally(
    "apiserver_websocket_streaming_requests",
    "[ALPHA] Total number of WebSocket streaming requests (exec/attach/portforward) routed by the API server, labeled "
    "by subresource and proxy_type. proxy_type is proxied_to_kubelet when the kubelet handles the request directly; "
    "otherwise translated_at_apiserver.",
    ("subresource", "proxy_type"),
    registry=REGISTRY,
)
