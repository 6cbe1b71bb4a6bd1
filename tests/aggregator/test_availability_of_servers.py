"""The condition of APIServices that name a Service, on a whole server and with real servers behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest
from api_services import AGGREGATED, group
from custom_resources import eventually
from patience import PATIENCE
from prometheus_client import generate_latest
from tls_backends import Pki, api_service, backend, external_service, own_address
from whole_server import whole_server

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.machinery.objects import Json
from pilothouse.testing import API

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = "v1.example.com"
SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def discovery(request: Request) -> Response:
    known = request.header(b"x-remote-user") in ("system:kube-aggregator", "pilothouse-testing")
    return Response(200 if known else 401, orjson.dumps({"path": request.path}))


@dataclass
class Cluster:
    server: API
    pki: Pki

    async def register(self, port: int = 443) -> None:
        service = {"namespace": "default", "name": "web", "port": port}
        made = api_service(service=service, caBundle=self.pki.ca_bundle)
        obj = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", **made}
        assert (await self.server.request("POST", API_SERVICES, obj)).status == 201

    async def add_service(self) -> None:
        ports = [{"name": "https", "port": 443, "targetPort": 8443}]
        obj = {"metadata": {"name": "web"}, "spec": {"ports": ports}}
        assert (await self.server.request("POST", SERVICES, obj)).status == 201

    async def add_service_to_this_machine(self) -> None:
        assert (await self.server.request("POST", SERVICES, external_service("web"))).status == 201

    async def add_endpoints(
        self, name: str, port_name: str = "https", *, address: str = "192.0.2.7", port: int = 8443, ready: bool = True
    ) -> None:
        obj: Json = {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "ports": [{"name": port_name, "port": port}],
            "endpoints": [{"addresses": [address], "conditions": {"ready": ready}}],
        }
        assert (await self.server.request("POST", SLICES, obj)).status == 201

    async def condition(self, reason: str, name: str = NAME) -> Json:
        """As soon as it has this reason."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found = (await self.server.request("GET", f"{API_SERVICES}/{name}")).json["status"].get(
                    "conditions"
                ) or [{}]
                if found[0].get("reason") == reason:
                    first: Json = found[0]
                    return first
                await asyncio.sleep(0.005)

    async def answers(self, path: str, wanted: bytes) -> None:
        """As soon as it does: the proxy hears of a condition a moment after it has been written."""
        async with asyncio.timeout(PATIENCE):
            while True:
                if (await self.server.request("GET", path)).body == wanted:
                    return
                await asyncio.sleep(0.005)

    async def becomes(self, reason: str) -> str:
        """The message with the reason."""
        found = await self.condition(reason)
        return f"{found['status']}: {found['message']}"


async def shown(metric: str) -> None:
    """As soon as it is: a write is counted a moment after others can read it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if metric in generate_latest(REGISTRY).decode():
                return
            await asyncio.sleep(0.005)


def status_writes() -> float:
    """How often the status of any APIService was written."""
    asked = (each for metric in REGISTRY.collect() if metric.name == "apiserver_request" for each in metric.samples)
    wanted = {"resource": "apiservices", "subresource": "status", "verb": "PUT"}
    return sum(each.value for each in asked if wanted.items() <= each.labels.items())


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with whole_server() as server:
        yield Cluster(server, Pki.make(tmp_path / "pki"))


@pytest.fixture
def address() -> str:
    """Endpoints may have any but loopback addresses."""
    return own_address() or pytest.skip("this machine has only a loopback address")


async def test_the_condition_says_what_is_missing_until_nothing_is(
    cluster: Cluster, address: str, unused_tcp_port: int
) -> None:
    await cluster.register()
    assert await cluster.becomes("ServiceNotFound") == 'False: service/web in "default" is not present'
    await cluster.add_service()
    assert (
        await cluster.becomes("EndpointsNotFound") == 'False: cannot find endpointslices for service/web in "default"'
    )
    await cluster.add_endpoints("unready", ready=False)
    await cluster.add_endpoints("other", "other")
    missing = 'False: endpointslices for service/web in "default" have no addresses with port name "https"'
    assert await cluster.becomes("MissingEndpoints") == missing
    await cluster.add_endpoints("web-1", address=address, port=unused_tcp_port)
    assert "connection refused" in await cluster.becomes("FailedDiscoveryCheck")
    async with backend(discovery, cluster.pki, host=address, port=unused_tcp_port):
        assert await cluster.becomes("Passed") == "True: all checks passed"
        answer = await eventually(cluster.server, 200, "GET", "/apis/example.com/v1")
        assert answer.json == {"path": "/apis/example.com/v1"}


async def test_a_port_that_the_service_does_not_have_is_named(cluster: Cluster) -> None:
    await cluster.add_service()
    await cluster.register(port=444)
    assert await cluster.becomes("ServicePortError") == 'False: service/web in "default" is not listening on port 444'


async def test_a_server_that_stops_answering_is_taken_out_and_put_back(cluster: Cluster, address: str) -> None:
    await cluster.add_service()
    async with backend(discovery, cluster.pki, host=address) as behind:
        port = behind.port
        await cluster.add_endpoints("web-1", address=address, port=port)
        await cluster.register()
        await cluster.condition("Passed")
    await cluster.server.request("PATCH", f"{SERVICES}/web", {"metadata": {"labels": {"a": "b"}}}, media=MERGE)
    url = f"https://{address}:{port}/apis/example.com/v1"
    refused = f'Get "{url}": dial tcp {address}:{port}: connect: connection refused'
    assert await cluster.becomes("FailedDiscoveryCheck") == f"False: failing or missing response from {url}: {refused}"
    await cluster.answers("/apis/example.com/v1/things", b"service unavailable\n")
    await shown('aggregator_unavailable_apiservice{name="v1.example.com"} 1')
    await shown('aggregator_unavailable_apiservice_total{name="v1.example.com",reason="FailedDiscoveryCheck"}')
    async with backend(discovery, cluster.pki, host=address, port=port):
        await cluster.condition("Passed")
        await eventually(cluster.server, 200, "GET", "/apis/example.com/v1/things")


async def test_a_condition_is_written_only_when_it_says_something_new(cluster: Cluster) -> None:
    checks = 0

    async def counted(request: Request) -> Response:
        nonlocal checks
        checks += 1
        return await discovery(request)

    await cluster.add_service_to_this_machine()
    async with backend(counted, cluster.pki) as behind:
        await cluster.register(behind.port)
        await cluster.condition("Passed")
        await cluster.answers("/apis/example.com/v1", orjson.dumps({"path": "/apis/example.com/v1"}))
        written = status_writes()
        for label in "xyz":
            before = checks
            await cluster.server.request(
                "PATCH", f"{SERVICES}/web", {"metadata": {"labels": {"a": label}}}, media=MERGE
            )
            async with asyncio.timeout(PATIENCE):
                while checks == before:  # noqa: ASYNC110 (nobody tells when a check has been made)
                    await asyncio.sleep(0.005)
        assert status_writes() == written
    await cluster.server.request("PATCH", f"{SERVICES}/web", {"metadata": {"labels": {"a": "b"}}}, media=MERGE)
    await cluster.condition("FailedDiscoveryCheck")


async def test_a_server_that_refuses_the_aggregator_is_not_available(cluster: Cluster) -> None:
    async def refuse(request: Request) -> Response:
        return Response(403, b"no")

    await cluster.add_service_to_this_machine()
    async with backend(refuse, cluster.pki) as behind:
        await cluster.register(behind.port)
        url = f"https://localhost:{behind.port}/apis/example.com/v1"
        said = await cluster.becomes("FailedDiscoveryCheck")
    assert said == f"False: failing or missing response from {url}: bad status from {url}: 403"


async def test_a_server_with_discovery_that_fails_its_check_stays_current_in_discovery(cluster: Cluster) -> None:
    document = {"kind": "APIGroupDiscoveryList", "items": [group("example.com", v1=["things"])]}

    async def serve(request: Request) -> Response:
        if request.path != "/apis":
            return Response(500, b"broken")
        return Response(200, orjson.dumps(document), [(b"content-type", AGGREGATED.encode())])

    async def entry() -> Json | None:
        groups = (await cluster.server.request("GET", "/apis", accept=AGGREGATED)).json["items"]
        return next((found["versions"][0] for found in groups if found["metadata"]["name"] == "example.com"), None)

    await cluster.add_service_to_this_machine()
    async with backend(serve, cluster.pki) as behind:
        await cluster.register(behind.port)
        await cluster.becomes("FailedDiscoveryCheck")
        async with asyncio.timeout(PATIENCE):
            while (found := await entry()) is None or found["freshness"] != "Current":  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert [resource["resource"] for resource in found["resources"]] == ["things"]
        assert (await cluster.server.request("GET", "/apis/example.com/v1/things")).status == 503


async def test_custom_metrics_for_horizontal_autoscaling_are_registered_behind_a_headless_service(
    cluster: Cluster, address: str
) -> None:
    server = cluster.server
    ports = [{"name": "https-hpa-dont-edit-it", "port": 9997, "targetPort": 9997}]
    service = {"metadata": {"name": "kube-hpa"}, "spec": {"clusterIP": "None", "ports": ports, "selector": {"a": "b"}}}
    await server.request("POST", "/api/v1/namespaces/kube-system/services", service)
    async with backend(discovery, cluster.pki, host=address) as behind:
        endpoints = {
            "metadata": {"name": "kube-hpa-1", "labels": {"kubernetes.io/service-name": "kube-hpa"}},
            "addressType": "IPv4",
            "ports": [{"name": "https-hpa-dont-edit-it", "port": behind.port}],
            "endpoints": [{"addresses": [address]}],
        }
        await server.request("POST", "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", endpoints)
        registered = {
            "metadata": {"name": "v1beta1.custom.metrics.k8s.io"},
            "spec": {
                "service": {"name": "kube-hpa", "namespace": "kube-system", "port": 9997},
                "group": "custom.metrics.k8s.io",
                "version": "v1beta1",
                "insecureSkipTLSVerify": True,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
        }
        assert (await server.request("POST", API_SERVICES, registered)).status == 201
        condition = await cluster.condition("Passed", "v1beta1.custom.metrics.k8s.io")
        assert condition["message"] == "all checks passed"
        table = (await server.request("GET", f"{API_SERVICES}/v1beta1.custom.metrics.k8s.io", accept=TABLE)).json
        assert table["rows"][0]["cells"][:3] == ["v1beta1.custom.metrics.k8s.io", "kube-system/kube-hpa", "True"]
        metric = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/pods/web/qps"
        assert (await eventually(server, 200, "GET", metric)).json == {"path": metric}
