"""Why an aggregated API is not available: what the cluster knows of it, what its server answers, and both together.

It connects from the machine that it runs on, which may not reach all that the cluster's machines reach.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator

from pilothouse.aggregator.apiservice.availability import AVAILABLE
from pilothouse.aggregator.apiservice.order import group_version_of
from pilothouse.aggregator.proxy.client_certificate import ProxyClientCertificate
from pilothouse.aggregator.proxy.transport import ProxyTransport, TransportConfig, TransportUnusable
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.serving.certificate_files import KeyPair
from pilothouse.cli.diagnosis.backend import BackendServer
from pilothouse.cli.diagnosis.findings import Finding, failed, note, ok
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.rest.options import ListOptions
from pilothouse.machinery.conditions import find_condition
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

_TRUST_MAP = "extension-apiserver-authentication"


@dataclass(frozen=True, slots=True)
class APIServiceDoctor:
    client: Client
    proxy_client: KeyPair | None = None

    async def examine(self, name: str) -> AsyncIterator[Finding]:
        """Raises StatusError, ConnectionFailed where the cluster can not be asked."""
        try:
            api_service = await self.client.resource("apiregistration.k8s.io/v1", "apiservices").get(name)
        except NotFound:
            yield failed("apiservice", f"there is no APIService {name}", "its name is VERSION.GROUP")
            return
        yield _condition(api_service)
        if api_service["spec"].get("service") is None:
            yield ok("service", "none: the API server itself serves this group version")
        else:
            async for finding in self._remote(api_service):
                yield finding
        yield await self._through_the_aggregator(api_service)

    async def _remote(self, api_service: Json) -> AsyncIterator[Finding]:
        place = TransportConfig.of(api_service)
        yield await self._front_proxy()
        try:
            service = await self.client.resource("v1", "services", namespace=place.namespace).get(place.service)
        except NotFound:
            yield failed("service", f"there is no Service {place.namespace}/{place.service}")
            return
        found = await self._places(service, place)
        for finding in found.findings:
            yield finding
        path = f"/apis/{group_version_of(api_service)}"
        transport = ProxyTransport(place, ProxyClientCertificate(self.proxy_client))
        try:
            tls = await transport.tls()
        except TransportUnusable as error:
            yield failed("tls", str(error), "spec.caBundle must be certificates in PEM")
            return
        for host, port in found.addresses:
            target = Target(host, port, path, tls=tls, server_name=place.server_name)
            async for finding in BackendServer(target, transport, self.proxy_client is not None).examine():
                yield finding
        transport.close()

    async def _front_proxy(self) -> Finding:
        maps = self.client.resource("v1", "configmaps", namespace="kube-system")
        try:
            data = (await maps.get(_TRUST_MAP)).get("data") or {}
        except StatusError as error:
            return note("authentication", f"ConfigMap kube-system/{_TRUST_MAP}: {error}")
        if "requestheader-client-ca-file" in data:
            return ok("authentication", f"ConfigMap kube-system/{_TRUST_MAP} names the CA of front proxies")
        advice = "extension servers that go by it will refuse the aggregator; see --requestheader-client-ca-file"
        return failed("authentication", f"ConfigMap kube-system/{_TRUST_MAP} names no CA of front proxies", advice)

    async def _places(self, service: Json, place: TransportConfig) -> _Places:
        spec, named = service["spec"], f"Service {place.namespace}/{place.service}"
        if spec.get("type") == "ExternalName":
            host = spec.get("externalName") or ""
            return _Places([ok("service", f"{named} stands for {host}")], [(host, place.port)])
        port = next((each for each in spec.get("ports") or () if each.get("port") == place.port), None)
        if port is None:
            listed = ", ".join(str(each.get("port")) for each in spec.get("ports") or ()) or "none"
            return _Places([failed("service", f"{named} has no port {place.port}; its ports: {listed}")], [])
        slices = await self.client.resource("discovery.k8s.io/v1", "endpointslices", namespace=place.namespace).list(
            ListOptions(label_selector=f"kubernetes.io/service-name={place.service}")
        )
        addresses = list(_ready(slices["items"], port.get("name") or ""))
        return _Places([ok("service", f"{named} has port {place.port}"), _endpoints(slices, addresses)], addresses)

    async def _through_the_aggregator(self, api_service: Json) -> Finding:
        version, began = group_version_of(api_service), time.monotonic()
        path = f"/apis/{version}" if version.group else f"/api/{version.version}"
        try:
            document = await self.client.get_json(path)
        except (StatusError, ConnectionFailed) as error:
            return failed("aggregator", f"GET {path}: {error}")
        took = f"{(time.monotonic() - began) * 1000:.1f} ms"
        if document.get("groupVersion") != str(version):
            return failed("aggregator", f"GET {path} is a document of {document.get('groupVersion')!r}")
        return ok("aggregator", f"GET {path} lists {len(document.get('resources') or ())} resources ({took})")


@dataclass(frozen=True, slots=True)
class _Places:
    findings: list[Finding]
    addresses: list[tuple[str, int]]


def _condition(api_service: Json) -> Finding:
    found = find_condition(api_service, AVAILABLE)
    if found is None:
        return note("apiservice", "nobody has looked yet whether it is available")
    state = f"Available is {found['status']} since {found.get('lastTransitionTime')}: {found.get('reason')}"
    text = f"{state} ({found.get('message')})"
    return ok("apiservice", text) if found["status"] == "True" else failed("apiservice", text)


def _endpoints(slices: Json, addresses: list[tuple[str, int]]) -> Finding:
    if addresses:
        return ok("endpoints", f"{len(addresses)} ready: {', '.join(f'{host}:{port}' for host, port in addresses)}")
    if not slices["items"]:
        return failed("endpoints", "the Service has no EndpointSlices", "do its selector and a running pod match?")
    return failed("endpoints", "no endpoint with the port's name is ready", "look at the pods' readiness")


def _ready(slices: list[Json], port_name: str) -> Iterator[tuple[str, int]]:
    for each in slices:
        ports = [port["port"] for port in each.get("ports") or () if port.get("name", "") == port_name]
        for endpoint in each.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                yield from ((endpoint["addresses"][0], port) for port in ports[:1])
