"""Forwards the page's requests to the cluster as the kubeconfig's user.

Only known headers pass in either direction: no cookie reaches the cluster, and no response of the cluster or of a pod
behind its proxy can set a cookie or become part of the page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final

from pilothouse.apiserver.http import Headers, Request, Response, StreamBroken
from pilothouse.apiserver.outbound.targets import escaped_path, target_of
from pilothouse.apiserver.proxy.upgrades import forward_upgrade
from pilothouse.apiserver.serving.upgrade import is_upgrade
from pilothouse.client.config.credentials import credential_source, ssl_context
from pilothouse.client.config.model import ClientConfig
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.rest.http_transport import HttpTransport, fixed_headers
from pilothouse.client.rest.transport import HttpRequest, HttpResponse
from pilothouse.console.page import SHELL
from pilothouse.machinery.status_error import StatusError

FORWARDED: Final = ("/api", "/apis", "/openapi", "/version", "/metrics", "/readyz", "/debug/requests")
_MAX_BODY: Final = 3 << 20  # limit of the API server
_REQUEST_HEADERS: Final = frozenset({b"accept", b"content-type", b"if-none-match", b"impersonate-user"})
_RESPONSE_HEADERS: Final = frozenset({"content-type", "etag", "last-modified", "retry-after", "warning", "audit-id"})
_SANDBOXED: Final = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox")
_NOT_STORED: Final = (b"cache-control", b"no-store")
_DATA_DESTINATIONS: Final = frozenset({"", "empty", "document", "websocket"})


def is_forwarded(path: str) -> bool:
    return any(path == prefix or path.startswith(prefix + "/") for prefix in FORWARDED)


class ClusterForwarder:
    """Forwards requests to the cluster of one configuration, until closed."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self.transport = HttpTransport(config)
        self._credentials = credential_source(config)

    async def answer(self, request: Request) -> Response:
        """Return the cluster's response; 502 if the cluster is unreachable. Raises StatusError for a body above the
        limit.
        """
        if request.header(b"sec-fetch-dest") not in _DATA_DESTINATIONS:
            return _plain(403, "Responses of the cluster are not part of the page.\n")
        return await self.reachable(self._upgrade(request) if is_upgrade(request) else self._exchange(request))

    async def reachable(self, answering: Coroutine[Any, Any, Response]) -> Response:
        """Return the response; 502 if the cluster is unreachable."""
        try:
            return await answering
        except (ConnectionFailed, StatusError) as error:
            return _plain(502, f"{self._config.host} is unreachable: {error}\n")

    async def close(self) -> None:
        await self.transport.close()

    async def _exchange(self, request: Request) -> Response:
        body = await request.read_body(_MAX_BODY)
        sent = HttpRequest(
            request.method,
            _resource(request),
            {name.decode(): value.decode("latin-1") for name, value in request.headers if name in _REQUEST_HEADERS},
            body,
            repeated_headers=_impersonated_groups(request),
        )
        response = await _until_disconnected(request, self.transport.send(sent))
        return Response(
            response.status,
            _body(response),
            [
                *[
                    (name.encode(), value.encode())
                    for name, value in response.headers.items()
                    if name in _RESPONSE_HEADERS
                ],
                _SANDBOXED,
                *SHELL,
                _NOT_STORED,
            ],
        )

    async def _upgrade(self, request: Request) -> Response:
        credentials = await self._credentials.get()
        secure = self._config.host.startswith("https:")
        context = ssl_context(self._config.tls, credentials) if secure else None
        target = target_of(self._config.host.rstrip("/") + _resource(request), tls=context)
        headers: Headers = [(b"host", target.authority.encode("latin-1"))]
        headers += [
            (name, value)
            for name, value in request.headers
            if (name in (b"connection", b"upgrade") or name.startswith(b"sec-websocket-"))
        ]
        headers += [(name.encode(), value.encode("latin-1")) for name, value in fixed_headers(self._config)]
        if credentials.token:
            headers.append((b"authorization", f"Bearer {credentials.token}".encode("latin-1")))
        return await forward_upgrade(request, target, headers)


def _impersonated_groups(request: Request) -> tuple[tuple[str, str], ...]:
    """Return one Impersonate-Group for each of the page's comma-separated groups."""
    groups = request.header(b"impersonate-group").split(",")
    return tuple(("impersonate-group", group.strip()) for group in groups if group.strip())


def _resource(request: Request) -> str:
    path = escaped_path(request.path)
    return f"{path}?{request.query_string}" if request.query_string else path


async def _until_disconnected(request: Request, answering: Coroutine[Any, Any, HttpResponse]) -> HttpResponse:
    """Wait for the response, or for the disconnect of the page: a watch may be silent for a long time."""
    assert request.disconnected is not None
    answer = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(request.disconnected())
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ConnectionFailed("the page has disconnected")
        return answer.result()
    finally:
        gone.cancel()
        answer.cancel()


async def _body(response: HttpResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.chunks():
            yield chunk
    except ConnectionFailed as error:
        raise StreamBroken(str(error)) from error
    finally:
        await response.close()


def _plain(status: int, body: str) -> Response:
    return Response(status, body.encode(), [(b"content-type", b"text/plain; charset=utf-8"), _SANDBOXED, *SHELL])
