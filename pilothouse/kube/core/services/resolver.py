"""Resolvers of Services to an address: the cluster IP or an endpoint."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from pilothouse.apiserver.webhook.service_resolver import ServiceAddress, ServiceResolver, ServiceUnresolved
from pilothouse.kube.core.services import traits
from pilothouse.kube.core.services.lister import ServiceLister
from pilothouse.kube.core.services.locations import no_endpoints
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

_ROUTED = (traits.CLUSTER_IP, traits.LOAD_BALANCER, traits.NODE_PORT)
"""Service types with a cluster IP and endpoints."""


@dataclass(frozen=True, slots=True)
class ClusterIPResolver:
    """Returns the cluster IP. Requires routing of cluster IPs, such as kube-proxy."""

    lister: ServiceLister

    async def resolve(self, namespace: str, name: str, port: int) -> ServiceAddress:
        service = await _service(self.lister, namespace, name)
        kind = traits.type_of(service)
        if kind == traits.CLUSTER_IP and traits.cluster_ip_of(service) == traits.NO_ADDRESS:
            raise ServiceUnresolved('cannot route to service with ClusterIP "None"')
        if kind == traits.EXTERNAL_NAME:
            return ServiceAddress(service["spec"].get("externalName") or "", port)
        _require_routed(kind)
        return ServiceAddress(traits.cluster_ip_of(service), _service_port(service, name, port)["port"])


@dataclass(frozen=True, slots=True)
class EndpointResolver:
    """Returns a random ready endpoint, preferably of the Service's first IP family."""

    lister: ServiceLister

    async def resolve(self, namespace: str, name: str, port: int) -> ServiceAddress:
        service = await _service(self.lister, namespace, name)
        _require_routed(traits.type_of(service))
        port_name = _service_port(service, name, port).get("name") or ""
        slices = _in_order_of_preference(await self.lister.slices(namespace, name), service)
        address = next(_ready(slices, port_name), None)
        if address is None:
            raise ServiceUnresolved(no_endpoints(name))
        return address


@dataclass(frozen=True, slots=True)
class EndpointFirstResolver:
    """Returns a ready endpoint if the Service has any, otherwise the cluster IP or its error."""

    endpoints: EndpointResolver
    cluster_ips: ClusterIPResolver

    async def resolve(self, namespace: str, name: str, port: int) -> ServiceAddress:
        service = await self.endpoints.lister.find(namespace, name)
        if service is not None and traits.type_of(service) in _ROUTED:
            with suppress(ServiceUnresolved):
                return await self.endpoints.resolve(namespace, name, port)
        return await self.cluster_ips.resolve(namespace, name, port)


@dataclass(frozen=True, slots=True)
class LoopbackResolver:
    """Returns this server for the Service `kubernetes`, and delegates all other Services."""

    delegate: ServiceResolver
    own: Callable[[], ServiceAddress]

    async def resolve(self, namespace: str, name: str, port: int) -> ServiceAddress:
        if (namespace, name, port) == ("default", "kubernetes", 443):
            return self.own()
        return await self.delegate.resolve(namespace, name, port)


def service_resolver(lister: ServiceLister, *, endpoints: bool | None) -> ServiceResolver:
    """Return the resolver: by endpoints, by cluster IPs, or for None by endpoints with a fallback to cluster IPs."""
    by_endpoint, by_cluster_ip = EndpointResolver(lister), ClusterIPResolver(lister)
    if endpoints is None:
        return EndpointFirstResolver(by_endpoint, by_cluster_ip)
    return by_endpoint if endpoints else by_cluster_ip


async def _service(lister: ServiceLister, namespace: str, name: str) -> Json:
    service = await lister.find(namespace, name)
    if service is None:
        raise ServiceUnresolved(f"service {quote(name)} not found")
    return service


def _require_routed(kind: str) -> None:
    if kind not in _ROUTED:
        raise ServiceUnresolved(f"unsupported service type {quote(kind)}")


def _service_port(service: Json, name: str, number: int) -> Json:
    for port in traits.ports_of(service):
        if port.get("port") == number:
            return port
    raise ServiceUnresolved(f"no service port {number} found for service {quote(name)}")


def _in_order_of_preference(slices: Sequence[Json], service: Json) -> Sequence[Json]:
    if len(slices) < 2:
        return slices
    families = traits.ip_families_of(service)
    shuffled = random.sample(slices, len(slices))
    return sorted(shuffled, key=lambda slice_: slice_.get("addressType") not in families[:1])


def _ready(slices: Sequence[Json], port_name: str) -> Iterator[ServiceAddress]:
    for slice_ in slices:
        numbers = [p["port"] for p in slice_.get("ports") or () if p.get("name") == port_name and p.get("port")]
        endpoints = [endpoint for endpoint in slice_.get("endpoints") or () if is_ready(endpoint)]
        if numbers and endpoints:
            yield ServiceAddress(random.choice(endpoints)["addresses"][0], numbers[0])


def is_ready(endpoint: Json) -> bool:
    """Report whether the endpoint is ready. An unknown condition counts as ready."""
    return (endpoint.get("conditions") or {}).get("ready") is not False
