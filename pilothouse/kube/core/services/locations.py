"""services/proxy: HTTP to one of the pods behind a service.

Only addresses of pods in the same namespace are eligible. Otherwise authors of Endpoints could reach any address that
this server can reach.
"""

from __future__ import annotations

import random
import ssl
from collections.abc import Iterator
from functools import cache

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.outbound.tls import unverified_context
from pilothouse.apiserver.registry.operations import RequestContext
from pilothouse.apiserver.registry.options import GetOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kube.core.pods.connect.kubelet import Kubelets
from pilothouse.kube.core.pods.connect.locations import as_read
from pilothouse.kube.core.pods.connect.storages import PROXIED_METHODS, proxied
from pilothouse.kube.core.services.traits import ports_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest, NotFound
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersionKind, SchemeNamePort, split_scheme_name_port
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import ServiceUnavailable


@dataclass(frozen=True, slots=True)
class Location:
    scheme: str
    host: str
    port: int
    pod: Json
    """The pod with this address."""


@dataclass(frozen=True, slots=True)
class ServiceLocations:
    services: RegistryStore
    endpoints: RegistryStore
    pods: RegistryStore

    async def locate(self, ctx: RequestContext, identity: str) -> Location:
        """Return a random ready endpoint. Raises BadRequest, NotFound, ServiceUnavailable."""
        parts = split_scheme_name_port(identity)
        if parts is None:
            raise BadRequest(f"invalid service request {quote(identity)}")
        port_name = await self._port_name(ctx, parts)
        subsets = (await _get(self.endpoints, ctx, parts.name)).get("subsets") or []
        if not subsets:
            raise ServiceUnavailable(no_endpoints(parts.name))
        for candidate in _candidates(subsets, port_name):
            if (pod := await self._pod(ctx, candidate.address)) is not None:
                host = as_read(candidate.address.get("ip") or "")
                return Location(parts.scheme or "http", host, candidate.port, pod)
        raise ServiceUnavailable(no_endpoints(identity))

    async def _port_name(self, ctx: RequestContext, parts: SchemeNamePort) -> str:
        """Return the name of the port: Endpoints identify ports by name, so numbers are looked up in the service."""
        if not (parts.port.isascii() and parts.port.isdigit()):
            return parts.port
        service = await _get(self.services, ctx, parts.name)
        number = parts.port.lstrip("0") or "0"
        for port in ports_of(service):
            if str(port.get("port")) == number:
                return str(port.get("name") or "")
        reason = f"no service port {number} found for service {quote(parts.name)}"
        raise ServiceUnavailable(reason)

    async def _pod(self, ctx: RequestContext, address: Json) -> Json | None:
        """Return the pod with the address, or None for an address outside the namespace."""
        target = address.get("targetRef") or {}
        if target.get("namespace") != ctx.namespace or not target.get("name"):
            return None
        try:
            pod = await _get(self.pods, ctx, target["name"])
        except NotFound:
            return None
        own = (pod.get("status") or {}).get("podIPs") or ()
        return pod if any(pod_ip.get("ip") == address.get("ip") for pod_ip in own) else None


@dataclass(frozen=True, slots=True)
class _Candidate:
    address: Json
    port: int


def _candidates(subsets: list[Json], port_name: str) -> Iterator[_Candidate]:
    """Yield every ready address with this port, from a random start."""
    for subset in _from_anywhere(subsets):
        for port in subset.get("ports") or ():
            if (port.get("name") or "") == port_name:
                for address in _from_anywhere(subset.get("addresses") or []):
                    yield _Candidate(address, port.get("port") or 0)


def _from_anywhere(values: list[Json]) -> list[Json]:
    start = random.randrange(len(values)) if values else 0
    return values[start:] + values[:start]


def no_endpoints(service: str) -> str:
    return f"no endpoints available for service {quote(service)}"


async def _get(registry: RegistryStore, ctx: RequestContext, name: str) -> Json:
    return (await registry.get(ctx, name, GetOptions())).parse()


PROXY_OPTIONS = GroupVersionKind("", "v1", "ServiceProxyOptions")


@dataclass(frozen=True, slots=True)
class ServiceProxy:
    locations: ServiceLocations
    kubelets: Kubelets
    methods: frozenset[str] = PROXIED_METHODS

    async def connect(self, ctx: RequestContext, name: str, request: Request) -> Response:
        location = await self.locations.locate(ctx, name)
        if (simulated := await self.kubelets.simulated_pod(location.pod, location.port)) is not None:
            return await proxied(request, simulated)
        tls = _unverified() if location.scheme == "https" else None
        return await proxied(request, Target(location.host, location.port, "", tls=tls))


@cache
def _unverified() -> ssl.SSLContext:
    """Return a TLS context without verification: certificates of pods have no known CA."""
    return unverified_context()
