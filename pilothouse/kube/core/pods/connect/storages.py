"""Subresources with a connection to the pod or node: exec, attach, portforward, proxy, and nodes/proxy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pilothouse.apiserver.authz.interface import Authorizer, Decision, attributes_of
from pilothouse.apiserver.endpoints.options import boolean
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.outbound.targets import Target, escaped_path
from pilothouse.apiserver.proxy.upgrades import WEBSOCKETS, forward_upgrade
from pilothouse.apiserver.registry.operations import RequestContext
from pilothouse.apiserver.server.features import enabled
from pilothouse.apiserver.serving.upgrade import is_upgrade
from pilothouse.kube.core.pods.connect.kubelet import Kubelets
from pilothouse.kube.core.pods.connect.locations import PodLocations, StreamLocation, port_number, proxyable_address_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest, Forbidden
from pilothouse.machinery.gofmt import parse_int64, quote
from pilothouse.machinery.names import GroupVersionKind, split_scheme_name_port

PROXIED_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})

_STREAMED_METHODS = frozenset({"GET", "POST"})
_STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
"""Stream name -> the kubelet's query parameter."""


@dataclass(frozen=True, slots=True)
class StreamStorage:
    """exec and attach: a session in a container over an upgraded connection to the kubelet."""

    action: str
    locations: PodLocations
    authorizer: Authorizer
    methods: frozenset[str] = _STREAMED_METHODS

    async def connect(self, ctx: RequestContext, name: str, request: Request) -> Response:
        await ensure_may_create(request, self.authorizer)
        pod = await self.locations.pod(ctx, name)
        streams = {stream: bool(boolean(request, stream)) for stream in _STREAMS}
        parameters = list(self._parameters(request, streams))
        location = await self.locations.stream(pod, self.action, request.param("container"), parameters)
        if _handled_here("TranslateStreamCloseWebsocketRequests", self.action, location):
            # Import the translation on first use.
            from pilothouse.apiserver.proxy.remote_command import SessionStreams
            from pilothouse.apiserver.proxy.stream_translator import is_translatable, translated

            if is_translatable(request):
                return translated(request, location.target, SessionStreams(**streams))
        return await upgraded(request, location.target)

    def _parameters(self, request: Request, streams: Mapping[str, bool]) -> Iterator[tuple[str, str]]:
        yield from ((parameter, "1") for name, parameter in _STREAMS.items() if streams[name])
        if self.action == "exec":
            yield from (("command", word) for word in request.query.get("command") or ())


@dataclass(frozen=True, slots=True)
class PortForwardStorage:
    locations: PodLocations
    authorizer: Authorizer
    methods: frozenset[str] = _STREAMED_METHODS

    async def connect(self, ctx: RequestContext, name: str, request: Request) -> Response:
        await ensure_may_create(request, self.authorizer)
        pod = await self.locations.pod(ctx, name)
        location = await self.locations.port_forward(pod, await request.weight.run(_wanted_ports, request))
        if _handled_here("PortForwardWebsockets", "portforward", location):
            from pilothouse.apiserver.proxy.stream_tunnel import tunneled, tunneled_protocols

            if tunneled_protocols(request):
                return await tunneled(request, location.target)
        return await upgraded(request, location.target)


def _handled_here(feature: str, subresource: str, location: StreamLocation) -> bool:
    """Report whether this server translates WebSockets, and count the decision."""
    if not enabled(feature):
        return False
    is_passed_on = enabled("ExtendWebSocketsToKubelet") and location.speaks_websockets
    WEBSOCKETS.inc((subresource, "proxied_to_kubelet" if is_passed_on else "translated_at_apiserver"))
    return not is_passed_on


@dataclass(frozen=True, slots=True)
class ProxyStorage:
    """proxy: HTTP to a port of the pod."""

    locations: PodLocations
    methods: frozenset[str] = PROXIED_METHODS

    async def connect(self, ctx: RequestContext, name: str, request: Request) -> Response:
        target = await self.locations.proxy(ctx, name)
        return await proxied(request, target)


async def proxied(request: Request, target: Target) -> Response:
    """Forward the request to `target`, with the rest of the path after the subresource."""
    prefix, path = split_path(request)
    if is_upgrade(request):
        return await forward_upgrade(request, _at(target, path, request))
    if not path and request.method in ("GET", "HEAD"):
        query = f"?{request.query_string}" if request.query_string else ""
        return Response(301, headers=[(b"location", f"{request.path}/{query}".encode())])
    # Import the HTTP client on first use.
    from pilothouse.kube.core.pods.connect.forwarding import forward

    return await forward(request, _at(target, path, request), prefix=prefix)


def _at(target: Target, path: str, request: Request) -> Target:
    return replace(target, path=target.path + (escaped_path(path) or "/"), query=request.query_string)


def split_path(request: Request) -> tuple[str, str]:
    """Split the path after the subresource."""
    marker = f"/{request.info.parts[1]}/{request.info.parts[2]}"
    end = request.path.index(marker) + len(marker)
    return request.path[:end], request.path[end:]


async def upgraded(request: Request, target: Target) -> Response:
    if not is_upgrade(request):
        raise BadRequest("Upgrade request required")
    return await forward_upgrade(request, target)


async def ensure_may_create(request: Request, authorizer: Authorizer) -> None:
    """Require the create permission for WebSockets: the handshake is a GET, but a session does more than read."""
    if request.info.verb == "create" or not enabled("AuthorizePodWebsocketUpgradeCreatePermission"):
        return
    answer = await authorizer.authorize(replace(attributes_of(request), verb="create"))
    if answer.decision is not Decision.ALLOW:
        raise Forbidden.of(request.info.group_resource, request.info.name, answer.reason)


def _wanted_ports(request: Request) -> list[int]:
    ports: list[int] = []
    for text in request.query.get("ports") or ():
        for part in text.split(","):
            try:
                ports.append(parse_int64(part))
            except ValueError as error:
                raise BadRequest(str(error)) from None
    return ports


NODE_PROXY_OPTIONS = GroupVersionKind("", "v1", "NodeProxyOptions")


@dataclass(frozen=True, slots=True)
class NodeProxy:
    kubelets: Kubelets
    methods: frozenset[str] = PROXIED_METHODS

    async def connect(self, ctx: RequestContext, name: str, request: Request) -> Response:
        parts = split_scheme_name_port(name)
        if parts is None:
            raise BadRequest(f"invalid node request {quote(name)}")
        kubelet = await self.kubelets.locate(parts.name)
        port = port_number(parts.port) if parts.port else kubelet.port
        if kubelet.simulated_as and port == kubelet.port:
            return await proxied(request, self.kubelets.target(kubelet, ""))
        address = await proxyable_address_of(kubelet.host)
        config = self.kubelets.config
        if port == kubelet.port:
            target = Target(kubelet.host, port, "", tls=config.tls, timeout=config.timeout, address=address)
            return await proxied(request, target)
        tls = config.unverified_tls if parts.scheme == "https" else None
        return await proxied(request, Target(kubelet.host, port, "", tls=tls, address=address))
