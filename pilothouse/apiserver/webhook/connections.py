"""The connections to a webhook endpoint. Services are resolved per connection, to balance over the pods."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.outbound.dialing import Locate
from pilothouse.apiserver.outbound.failures import BackendFailed
from pilothouse.apiserver.outbound.pool import ConnectionPool
from pilothouse.apiserver.outbound.request import (
    AnswerTooLarge,
    OutboundRequest,
    OutboundResponse,
    inflated,
    read_answer,
)
from pilothouse.apiserver.outbound.targets import Target, target_of
from pilothouse.apiserver.webhook.endpoint import ServiceReference, WebhookCallFailed, WebhookEndpoint, tls_context
from pilothouse.apiserver.webhook.service_resolver import ServiceResolver, ServiceUnresolved
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote

_IDLE = 30.0
"""Idle timeout of a connection in seconds."""


@dataclass(frozen=True, slots=True)
class Call:
    query: str
    headers: Headers
    body: bytes

    def with_headers(self, headers: Headers) -> Call:
        return replace(self, headers=[*self.headers, *headers]) if headers else self


class EndpointConnections:
    def __init__(
        self, endpoint: WebhookEndpoint, services: ServiceResolver, client_certificate: bytes = b"", *, max_answer: int
    ) -> None:
        """Raises WebhookCallFailed."""
        tls = tls_context(endpoint.authorities, client_certificate)
        tls.set_alpn_protocols(endpoint.protocols)
        self.url = endpoint.url
        self._target = target_of(endpoint.url, tls=tls)
        self._max_answer = max_answer
        locate = None if endpoint.service is None else _locate(services, endpoint.service)
        self._pool = ConnectionPool(tls, locate=locate, idle_seconds=_IDLE)

    @property
    def host(self) -> str:
        return self._target.authority

    async def post(self, call: Call) -> OutboundResponse:
        """Send the call. Raises WebhookCallFailed."""
        request = OutboundRequest("POST", replace(self._target, query=call.query), call.headers, call.body)
        try:
            return await self._exchange(request)
        except (BackendFailed, ServiceUnresolved) as error:
            raise WebhookCallFailed(f"Post {quote(f'{self.url}?{call.query}')}: {error}") from None

    async def _exchange(self, request: OutboundRequest, *, fresh: bool = False) -> OutboundResponse:
        """Exchange request and response; retry once if a pooled connection was closed by the peer."""
        exchange = await self._pool.take(request.target, fresh=fresh)
        try:
            request.send_on(exchange)
            head = await exchange.head()
            try:
                return await inflated(await read_answer(exchange, head, limit=self._max_answer), limit=self._max_answer)
            except AnswerTooLarge as error:
                raise WebhookCallFailed(str(error)) from None
            except BackendFailed:
                reason = "unexpected error when reading response body. Please retry. Original error: unexpected EOF"
                raise WebhookCallFailed(reason) from None
        except BackendFailed as error:
            if not (exchange.reused and error.unanswered):
                raise
        finally:
            self._pool.give_back(request.target, exchange)
        return await self._exchange(request, fresh=True)

    def close(self) -> None:
        """Close idle connections; calls in progress keep theirs."""
        self._pool.close()


def _locate(services: ServiceResolver, service: ServiceReference) -> Locate:
    async def locate(target: Target) -> Target:
        """Resolve the service. Raises ServiceUnresolved."""
        found = await services.resolve(service.namespace, service.name, service.port)
        return replace(target, address=found.host, port=found.port)

    return locate
