"""Webhook calls: posts reviews as JSON over TLS. Raises WebhookCallFailed with client-go's messages.

Connections are pooled by endpoint and shared between configurations. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from math import ceil
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import orjson

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.outbound.failures import DEADLINE_EXCEEDED
from pilothouse.apiserver.rest_client_metrics import REST_CLIENT_METRICS, UNANSWERED
from pilothouse.apiserver.tracing.http_spans import outgoing
from pilothouse.apiserver.webhook.endpoint import (
    FindCredentials,
    WebhookCallFailed,
    WebhookCredentials,
    WebhookEndpoint,
    anonymous,
    endpoint_of,
    refused,
)
from pilothouse.apiserver.webhook.service_resolver import ServiceResolver
from pilothouse.machinery.codec.body_errors import BodyError
from pilothouse.machinery.codec.json import JsonError, parse_printed
from pilothouse.machinery.codec.scheme import interpret
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import format_duration
from pilothouse.machinery.errors_by_reason import from_status
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import NO_VERSION_OR_KIND
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.apiserver.outbound.request import OutboundResponse
    from pilothouse.apiserver.webhook.connections import Call, EndpointConnections

_MAX_ENDPOINTS = 200
_MAX_ANSWER = 64 * 1024 * 1024
_MAX_RETRIES = 10
_POST = "POST"
_SECOND = 1_000_000_000
_HEADERS = [
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, */*"),
    (b"accept-encoding", b"gzip"),
    (b"user-agent", b"kube-apiserver-admission"),
]


@dataclass(slots=True)
class _Pool:
    connections: EndpointConnections
    credentials: WebhookCredentials | None = None
    in_use: int = 0

    async def headers(self) -> Headers:
        own = await self.credentials.headers() if self.credentials else {}
        named = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in own.items()]
        replaced = {name for name, _ in named}
        return [*(pair for pair in _HEADERS if pair[0] not in replaced), *named]


class WebhookClients:
    def __init__(
        self,
        resolver: ServiceResolver,
        *,
        credentials: FindCredentials = anonymous,
        max_answer: int = _MAX_ANSWER,
    ) -> None:
        self._resolver = resolver
        self._credentials = credentials
        self._max_answer = max_answer
        self._pools: OrderedDict[WebhookEndpoint, _Pool] = OrderedDict()
        """Least recently used first."""

    async def post(self, config: Json, body: Json, *, timeout: float) -> Json:
        """Post `body` to a WebhookClientConfig. The timeout covers the whole call, and is sent to the webhook in whole
        seconds. Raises WebhookCallFailed."""
        # Deferred import of the HTTP client.
        from pilothouse.apiserver.webhook.connections import Call

        endpoint = endpoint_of(config)
        query = f"timeout={quote_plus(format_duration(ceil(timeout) * _SECOND))}"
        if endpoint not in self._pools:
            from pilothouse.apiserver.webhook.connections import EndpointConnections

            credentials = self._credentials(endpoint.target)
            certificate = credentials.client_certificate if credentials else b""
            self._pools[endpoint] = _Pool(
                EndpointConnections(endpoint, self._resolver, certificate, max_answer=self._max_answer), credentials
            )
        self._pools.move_to_end(endpoint)
        pool = self._pools[endpoint]
        pool.in_use += 1
        try:
            self._drop_oldest_idle()
            async with asyncio.timeout(timeout):
                call = Call(query, await pool.headers(), orjson.dumps(body))
                return _decoded(await _send_patiently(pool.connections, call))
        except TimeoutError:
            raise WebhookCallFailed(f"Post {quote(f'{endpoint.url}?{query}')}: {DEADLINE_EXCEEDED}") from None
        finally:
            pool.in_use -= 1

    async def close(self) -> None:
        for pool in self._pools.values():
            pool.connections.close()
        self._pools.clear()

    def _drop_oldest_idle(self) -> None:
        """Drop at most one idle pool, since each call adds at most one. Pools in use stay, regardless of the limit."""
        if len(self._pools) <= _MAX_ENDPOINTS:
            return
        oldest = next((each for each, pool in self._pools.items() if not pool.in_use), None)
        if oldest is not None:
            self._pools.pop(oldest).connections.close()


async def _send_patiently(connections: EndpointConnections, call: Call) -> OutboundResponse:
    """Send the call, and honour Retry-After."""
    start = time.monotonic()
    try:
        for tried in range(_MAX_RETRIES):
            answer = await _attempt(connections, call, again=tried > 0)
            after = answer.header(b"retry-after")
            if not (after.isdigit() and (answer.status == 429 or answer.status >= 500)):
                return answer
            await asyncio.sleep(int(after))
        return await _attempt(connections, call, again=True)
    finally:
        REST_CLIENT_METRICS.done(_POST, connections.host, time.monotonic() - start)


async def _attempt(connections: EndpointConnections, call: Call, *, again: bool) -> OutboundResponse:
    to, code = (_POST, connections.host), UNANSWERED
    REST_CLIENT_METRICS.sent(*to, len(call.body))
    try:
        with outgoing(_POST, f"{connections.url}?{call.query}") as traced:
            answer = await connections.post(call.with_headers(traced.headers))
            traced.answered(answer.status)
        code = str(answer.status)
    finally:
        REST_CLIENT_METRICS.attempted(*to, code, again=again)
    REST_CLIENT_METRICS.received(*to, len(answer.body))
    return answer


def _decoded(answer: OutboundResponse) -> Json:
    content_type = answer.header(b"content-type")
    if not 200 <= answer.status <= 206:
        raise refused(answer.status, content_type, answer.body)
    if not answer.body:
        kind = content_type or "application/json"
        raise WebhookCallFailed(f"0-length response with status code: {answer.status} and content type: {kind}")
    try:
        found = parse_printed(answer.body).value
        kind_of = interpret(found)
    except JsonError as error:
        raise WebhookCallFailed(f"{NO_VERSION_OR_KIND}{error}") from None
    except BodyError as error:
        raise WebhookCallFailed(str(error)) from None
    if kind_of.kind == "Status" and found.get("status") != "Success":
        status = from_status(found)
        raise WebhookCallFailed(status.message, status=status)
    return found or {}
