"""The proxy handler of one APIService: serves locally, or forwards to the service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import field

from pilothouse.aggregator.apiservice.strategy import AVAILABLE
from pilothouse.aggregator.proxy.forwarding import Forwarding
from pilothouse.aggregator.proxy.headers import forwarded_upgrade, reencoded
from pilothouse.aggregator.proxy.transport import ProxyTransport, TransportConfig, Transports, TransportUnusable
from pilothouse.apiserver.http import Handler, Request, Response, text
from pilothouse.apiserver.outbound.failures import DEADLINE_EXCEEDED, UNREACHABLE_SERVICE, BackendFailed
from pilothouse.apiserver.outbound.targets import Target, escaped_path
from pilothouse.apiserver.proxy.upgrades import forward_upgrade
from pilothouse.apiserver.server.run_options import ServerRunOptions
from pilothouse.apiserver.serving.upgrade import is_upgrade
from pilothouse.apiserver.webhook.service_resolver import NoServices, ServiceResolver, ServiceUnresolved
from pilothouse.kinds.conditions import is_true
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

_log = logging.getLogger(__name__)

_DISCOVERY_TIMEOUT = 5.0
_REDIRECTED = "the backend attempted to redirect this request, which is not permitted"


@dataclass(frozen=True, slots=True)
class ProxyConfig:
    """Configuration shared by all proxy handlers."""

    services: ServiceResolver = field(default_factory=NoServices)
    transports: Transports = field(default_factory=Transports)
    reject_redirects: bool = True
    run_options: ServerRunOptions = field(default_factory=ServerRunOptions)


class ProxyHandler:
    """A handler that can be updated while requests flow; a running request keeps the state of its start."""

    def __init__(self, local_delegate: Handler, config: ProxyConfig | None = None) -> None:
        self._local_delegate = local_delegate
        self._config = config or ProxyConfig()
        self._serve = local_delegate
        self._forward = local_delegate
        self._transport: ProxyTransport | None = None

    def update(self, api_service: Json) -> None:
        if api_service["spec"].get("service") is None:
            self.close()
            self._serve = self._forward = self._local_delegate
            return
        wanted = TransportConfig.of(api_service)
        if self._transport is None or self._transport.config != wanted:
            self.close()
            self._transport = self._config.transports.get(wanted)
        self._forward = _Remote(self._transport, self._config).serve
        self._serve = self._forward if is_true(api_service, AVAILABLE) else _unavailable

    def __call__(self, request: Request) -> Awaitable[Response]:
        return self._serve(request)

    def forward(self, request: Request) -> Awaitable[Response]:
        """Serve the request even if the APIService is unavailable, as the handler of upstream's discovery does."""
        return self._forward(request)

    def close(self) -> None:
        """Release the transport. Running requests complete."""
        if self._transport is not None:
            self._config.transports.drop(self._transport.config)
            self._transport = None


@dataclass(frozen=True, slots=True)
class _Remote:
    transport: ProxyTransport
    config: ProxyConfig

    async def serve(self, request: Request) -> Response:
        try:
            place = self._place
            address = await self.config.services.resolve(place.namespace, place.service, place.port)
            target = Target(
                address.host,
                address.port,
                escaped_path(request.path),
                await request.weight.run(reencoded, request.query_string),
                tls=await self.transport.tls(),
                server_name=place.server_name,
            )
        except ServiceUnresolved as error:
            _log.error("error resolving %s/%s: %s", self._place.namespace, self._place.service, error)
            return await _unavailable(request)
        except TransportUnusable as error:
            return _error(500, str(error))
        request.delegated()
        try:
            if is_upgrade(request):
                try:
                    return await forward_upgrade(request, target, forwarded_upgrade(request, target))
                except StatusError as error:
                    return _error(503, str(error))
            pool = await self.transport.pool()
            deadline = None
            if not request.info.is_long_running:
                deadline = asyncio.get_running_loop().time() + self.config.run_options.request_timeout
            forwarding = Forwarding(request, target, pool, deadline)
            # /apis/GROUP/VERSION: clients request discovery before any other path.
            is_discovery = not request.info.is_resource and request.path.strip("/").count("/") == 2
            if not is_discovery:
                return self._checked(await forwarding.run())
            async with asyncio.timeout(_DISCOVERY_TIMEOUT):
                return self._checked(await forwarding.run())
        except (BackendFailed, TimeoutError) as error:
            reason = str(error) or DEADLINE_EXCEEDED
            return _error(503, UNREACHABLE_SERVICE + reason)

    @property
    def _place(self) -> TransportConfig:
        return self.transport.config

    def _checked(self, response: Response) -> Response:
        redirected = 300 <= response.status <= 399 and any(name == b"location" for name, _ in response.headers)
        if not (redirected and self.config.reject_redirects):
            return response
        return text(502, _REDIRECTED)


async def _unavailable(request: Request) -> Response:
    return _error(503, "service unavailable")


def _error(status: int, message: str) -> Response:
    return text(status, f"{message}\n", x_content_type_options="nosniff")
