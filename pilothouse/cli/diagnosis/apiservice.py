"""Diagnosis of an APIService: the objects in the cluster, the backend server, and the request through the aggregator.

Connections start from this machine, which may not reach every address that the cluster reaches.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

from pilothouse.aggregator.apiservice.apiservices import group_version_of
from pilothouse.aggregator.apiservice.strategy import AVAILABLE
from pilothouse.aggregator.availability.checks import TIMEOUT
from pilothouse.aggregator.proxy.transport import (
    ProxyClientCertificate,
    ProxyTransport,
    TransportConfig,
    TransportUnusable,
)
from pilothouse.apiserver.authn.user import ANONYMOUS
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.serving.tls_options import KeyPair
from pilothouse.builder.registration import UNSUPPORTED_EXTERNAL_NAME
from pilothouse.cli.diagnosis import answers
from pilothouse.cli.diagnosis.backend import BackendServer
from pilothouse.cli.diagnosis.findings import Finding, failed, note, ok
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.kinds.conditions import find_condition
from pilothouse.kube.bootstrap.cluster_authentication_trust import NAME, NAMESPACE
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError


@dataclass(frozen=True, slots=True)
class APIServiceDoctor:
    client: Client
    proxy_client: KeyPair | None = None

    async def names(self) -> list[str]:
        """Return the APIServices of other servers. Raises as `examine`."""
        listed = await self._api_services.list()
        return [name_of(item) for item in listed["items"] if item["spec"].get("service") is not None]

    @property
    def _api_services(self) -> ResourceClient:
        return self.client.resource("apiregistration.k8s.io/v1", "apiservices")

    async def examine(self, name: str) -> AsyncIterator[Finding]:
        """Yield the findings, step by step. Raises StatusError, ConnectionFailed if the cluster cannot be queried."""
        try:
            api_service = await self._api_services.get(name)
        except NotFound:
            yield failed("apiservice", f"there is no APIService {name}", "name the APIService as VERSION.GROUP")
            return
        yield _condition(api_service)
        if api_service["spec"].get("service") is None:
            yield ok("service", "none: the API server serves this group version itself")
        else:
            async for finding in self._remote(api_service):
                yield finding
        yield await self._through_the_aggregator(api_service)

    async def _remote(self, api_service: Json) -> AsyncIterator[Finding]:
        config = TransportConfig.of(api_service)
        yield await self._front_proxy()
        try:
            service = await self.client.resource("v1", "services", namespace=config.namespace).get(config.service)
        except NotFound:
            advice = "create the Service, or name another Service in spec.service of the APIService"
            yield failed("service", f"there is no Service {config.namespace}/{config.service}", advice)
            return
        backend = await find_backend(self.client, service, config)
        refusal = _refused_external_name(api_service, service)
        for finding in [refusal] if refusal else backend.findings:
            yield finding
        async for finding in answers.examine_delegation(self.client, service):
            yield finding
        version = group_version_of(api_service)
        transport = ProxyTransport(config, ProxyClientCertificate(self.proxy_client))
        try:
            tls = await transport.tls()
        except TransportUnusable as error:
            yield failed("tls", str(error), "set spec.caBundle to certificates in PEM format")
            return
        for host, port in backend.addresses:
            target = Target(host, port, f"/apis/{version}", tls=tls, server_name=config.server_name)
            async for finding in BackendServer(target, transport, self.proxy_client is not None, version).examine():
                yield finding
        transport.close()

    async def _front_proxy(self) -> Finding:
        maps = self.client.resource("v1", "configmaps", namespace=NAMESPACE)
        try:
            data = (await maps.get(NAME)).get("data") or {}
        except StatusError as error:
            return note("authentication", f"ConfigMap {NAMESPACE}/{NAME}: {error}")
        if "requestheader-client-ca-file" in data:
            return ok("authentication", f"ConfigMap {NAMESPACE}/{NAME} names the CA of front proxies")
        advice = "set --requestheader-client-ca-file: extension servers that read the ConfigMap reject the aggregator"
        return failed("authentication", f"ConfigMap {NAMESPACE}/{NAME} names no CA of front proxies", advice)

    async def _through_the_aggregator(self, api_service: Json) -> Finding:
        version, began = group_version_of(api_service), time.monotonic()
        path = f"/apis/{version}" if version.group else f"/api/{version.version}"
        request = f"GET {path}"
        try:
            async with asyncio.timeout(TIMEOUT):
                document = await self.client.get_json(path)
        except TimeoutError:
            return answers.too_slow("aggregator", request, TIMEOUT)
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            advice = answers.REJECTED_FRONT_PROXY if ANONYMOUS in str(error) else ""
            return answers.forbidden_delegation(str(error)) or failed("aggregator", f"{request}: {error}", advice)
        seconds = time.monotonic() - began
        text = f"{request} lists {len(document.get('resources') or ())} resources ({seconds * 1000:.1f} ms)"
        mismatch = answers.other_group(
            "aggregator", document, answers.DiscoveryRequest(request, version, seconds, identified=True)
        )
        return mismatch or answers.timed("aggregator", text, seconds)


def _refused_external_name(api_service: Json, service: Json) -> Finding | None:
    """Return the finding about an ExternalName Service behind --enable-aggregator-routing; None in all other cases."""
    message = (find_condition(api_service, AVAILABLE) or {}).get("message") or ""
    if UNSUPPORTED_EXTERNAL_NAME not in message:
        return None
    named = f"Service {namespace_of(service)}/{name_of(service)}"
    text = f"{named} is an ExternalName, but the aggregator connects to endpoints (--enable-aggregator-routing)"
    advice = "create a Service without selector, and an EndpointSlice with the server's address; --register does both"
    return failed("service", text, advice)


def _condition(api_service: Json) -> Finding:
    condition = find_condition(api_service, AVAILABLE)
    if condition is None:
        return note("apiservice", "no condition Available yet: the aggregator has not checked the APIService")
    state = f"Available is {condition['status']} since {condition.get('lastTransitionTime')}: {condition.get('reason')}"
    text = f"{state} ({condition.get('message')})"
    return ok("apiservice", text) if condition["status"] == "True" else failed("apiservice", text)


@dataclass(frozen=True, slots=True)
class BackendAddresses:
    findings: list[Finding]
    addresses: list[tuple[str, int]]


async def find_backend(client: Client, service: Json, config: TransportConfig) -> BackendAddresses:
    spec, named = service["spec"], f"Service {config.namespace}/{config.service}"
    if spec.get("type") == "ExternalName":
        host = spec.get("externalName") or ""
        return BackendAddresses([ok("service", f"{named} stands for {host}")], [(host, config.port)])
    port = next((port for port in spec.get("ports") or () if port.get("port") == config.port), None)
    if port is None:
        listed = ", ".join(str(port.get("port")) for port in spec.get("ports") or ()) or "none"
        advice = "set spec.service.port of the APIService to a port of the Service"
        return BackendAddresses(
            [failed("service", f"{named} has no port {config.port}; its ports: {listed}", advice)], []
        )
    slices = await client.resource("discovery.k8s.io/v1", "endpointslices", namespace=config.namespace).list(
        ListOptions(label_selector=f"kubernetes.io/service-name={config.service}")
    )
    addresses = list(_ready(slices["items"], port.get("name") or ""))
    labels = ",".join(f"{key}={value}" for key, value in (spec.get("selector") or {}).items())
    endpoints = _endpoints(
        slices["items"], addresses, named, f"kubectl get pods -n {config.namespace} -l {labels}" if labels else ""
    )
    return BackendAddresses([ok("service", f"{named} has port {config.port}"), endpoints], addresses)


def _endpoints(slices: list[Json], addresses: list[tuple[str, int]], named: str, pods: str) -> Finding:
    if addresses:
        return ok("endpoints", f"{len(addresses)} ready: {', '.join(f'{host}:{port}' for host, port in addresses)}")
    if not any(slice_.get("endpoints") for slice_ in slices):
        advice = f"start the server, with the labels that the Service selects: {pods}" if pods else _NO_SELECTOR
        return failed("endpoints", f"{named} has no endpoints", advice)
    advice = f"find out why its pods are not ready: {pods}" if pods else _NO_SELECTOR
    return failed("endpoints", f"no endpoint of {named} is ready at the port's name", advice)


_NO_SELECTOR = "the Service has no selector: add a selector, or create its EndpointSlice with the port's name"


def _ready(slices: list[Json], port_name: str) -> Iterator[tuple[str, int]]:
    for slice_ in slices:
        ports = [port["port"] for port in slice_.get("ports") or () if port.get("name", "") == port_name]
        for endpoint in slice_.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                yield from ((endpoint["addresses"][0], port) for port in ports[:1])
