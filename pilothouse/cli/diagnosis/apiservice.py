"""Why an aggregated API is not available: what the cluster knows of it, what its server answers, and both together.

It connects from the machine that it runs on, which may not reach all that the cluster's machines reach.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from pilothouse.aggregator.apiservice.order import group_version_of
from pilothouse.aggregator.apiservice.strategy import AVAILABLE
from pilothouse.aggregator.availability.discovery_check import TIMEOUT
from pilothouse.aggregator.proxy.transport import (
    ProxyClientCertificate,
    ProxyTransport,
    TransportConfig,
    TransportUnusable,
)
from pilothouse.apiserver.authn.user import ANONYMOUS
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.serving.certificate_files import KeyPair
from pilothouse.cli.diagnosis.answers import NOT_BELIEVED, Asked, other_group, timed, too_slow
from pilothouse.cli.diagnosis.backend import BackendServer
from pilothouse.cli.diagnosis.delegation import examine_delegation, refused_by_the_cluster
from pilothouse.cli.diagnosis.findings import Finding, failed, note, ok
from pilothouse.cli.diagnosis.places import find_places
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.kinds.conditions import find_condition
from pilothouse.kube.bootstrap.cluster_authentication_trust import NAME, NAMESPACE
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.status_error import StatusError


@dataclass(frozen=True, slots=True)
class APIServiceDoctor:
    client: Client
    proxy_client: KeyPair | None = None

    async def names(self) -> list[str]:
        """Return the APIServices that other servers stand behind. Raises as `examine`."""
        listed = await self._api_services.list()
        return [name_of(each) for each in listed["items"] if each["spec"].get("service") is not None]

    @property
    def _api_services(self) -> ResourceClient:
        return self.client.resource("apiregistration.k8s.io/v1", "apiservices")

    async def examine(self, name: str) -> AsyncIterator[Finding]:
        """Raises StatusError, ConnectionFailed where the cluster can not be asked."""
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
        place = TransportConfig.of(api_service)
        yield await self._front_proxy()
        try:
            service = await self.client.resource("v1", "services", namespace=place.namespace).get(place.service)
        except NotFound:
            advice = "create the Service, or name another Service in spec.service of the APIService"
            yield failed("service", f"there is no Service {place.namespace}/{place.service}", advice)
            return
        found = await find_places(self.client, service, place)
        for finding in found.findings:
            yield finding
        async for finding in examine_delegation(self.client, service):
            yield finding
        version = group_version_of(api_service)
        transport = ProxyTransport(place, ProxyClientCertificate(self.proxy_client))
        try:
            tls = await transport.tls()
        except TransportUnusable as error:
            yield failed("tls", str(error), "set spec.caBundle to certificates in PEM format")
            return
        for host, port in found.addresses:
            target = Target(host, port, f"/apis/{version}", tls=tls, server_name=place.server_name)
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
        asked = f"GET {path}"
        try:
            async with asyncio.timeout(TIMEOUT):
                document = await self.client.get_json(path)
        except TimeoutError:
            return too_slow("aggregator", asked, TIMEOUT)
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            advice = NOT_BELIEVED if ANONYMOUS in str(error) else ""
            return refused_by_the_cluster(str(error)) or failed("aggregator", f"{asked}: {error}", advice)
        seconds = time.monotonic() - began
        text = f"{asked} lists {len(document.get('resources') or ())} resources ({seconds * 1000:.1f} ms)"
        wrong = other_group("aggregator", document, Asked(asked, version, seconds, identified=True))
        return wrong or timed("aggregator", text, seconds)


def _condition(api_service: Json) -> Finding:
    found = find_condition(api_service, AVAILABLE)
    if found is None:
        return note("apiservice", "no condition Available yet: the aggregator has not checked the APIService")
    state = f"Available is {found['status']} since {found.get('lastTransitionTime')}: {found.get('reason')}"
    text = f"{state} ({found.get('message')})"
    return ok("apiservice", text) if found["status"] == "True" else failed("apiservice", text)
