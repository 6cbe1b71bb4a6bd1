"""services/proxy: which pod a request goes to, and that it gets there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from services import Cluster, service_cluster

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.offload import Weight
from pilothouse.apiserver.registry.operations import RequestContext
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.request_info import request_info
from pilothouse.kube.core.services.locations import Location
from pilothouse.kube.core.services.network import ServiceNetwork
from pilothouse.machinery.errors import BadRequest, NotFound
from pilothouse.machinery.names import GroupResource, SchemeNamePort, split_scheme_name_port
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import ServiceUnavailable

CONTEXT = RequestContext("default", GroupResource("", "services"), User("tester"), warn=print)
TARGET: Json = {"kind": "Pod", "name": "pod", "namespace": "default"}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with service_cluster(tmp_path, ServiceNetwork()) as opened:
        yield opened


async def store(registry: RegistryStore, name: str, **fields: Any) -> None:
    """Past all rules, so that endpoints can be on this machine."""
    obj = {"metadata": {"name": name, "namespace": "default", "uid": "u"}, **fields}
    await registry.objects.create(registry.keys.object("default", name), obj, ttl=0, dry_run=False, weight=Weight())


async def serve(cluster: Cluster, *, ip: str = "10.1.1.1", port: int = 8080, target: Json | None = TARGET) -> None:
    """A service `web` with the port `http` 80, its endpoints, and the pod behind them."""
    await cluster.create("web", ports=[{"port": 80, "name": "http"}])
    address = {"ip": ip} | ({"targetRef": target} if target else {})
    ports = [{"name": "http", "port": port}]
    await store(cluster.storage.endpoints, "web", subsets=[{"addresses": [address], "ports": ports}])
    addresses = [{"ip": ip} for ip in ("10.1.1.1", "127.0.0.1", "0177.0.0.1")]
    await store(cluster.storage.proxy.locations.pods, "pod", status={"podIPs": addresses})


async def locate(cluster: Cluster, identity: str) -> Location:
    return await cluster.storage.proxy.locations.locate(CONTEXT, identity)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("web", SchemeNamePort("", "web", "")),
        ("web:80", SchemeNamePort("", "web", "80")),
        ("https:web:", SchemeNamePort("https", "web", "")),
        ("ftp:web:80", None),
        (":80", None),
        ("a:b:c:d", None),
    ],
)
def test_a_name_may_have_a_scheme_and_a_port(text: str, parts: SchemeNamePort | None) -> None:
    assert split_scheme_name_port(text) == parts


@pytest.mark.parametrize(
    ("identity", "scheme"), [("web:http", "http"), ("web:80", "http"), ("https:web:http", "https")]
)
async def test_a_port_is_found_by_its_name_and_by_its_number(cluster: Cluster, identity: str, scheme: str) -> None:
    await serve(cluster)
    found = await locate(cluster, identity)
    assert (found.scheme, found.host, found.port) == (scheme, "10.1.1.1", 8080)


async def test_invalid_name_is_rejected(cluster: Cluster) -> None:
    with pytest.raises(BadRequest, match='invalid service request "a:b:c:d"'):
        await locate(cluster, "a:b:c:d")


async def test_a_service_without_endpoints_is_not_found(cluster: Cluster) -> None:
    await cluster.create("web")
    with pytest.raises(NotFound, match='services "web" not found'):
        await locate(cluster, "web")


async def test_unknown_port_number_is_unavailable(cluster: Cluster) -> None:
    await serve(cluster)
    with pytest.raises(ServiceUnavailable, match='no service port 81 found for service "web"'):
        await locate(cluster, "web:81")


async def test_port_without_endpoints_is_unavailable(cluster: Cluster) -> None:
    await serve(cluster)
    with pytest.raises(ServiceUnavailable, match='no endpoints available for service "web"'):
        await locate(cluster, "web")


@pytest.mark.parametrize("target", [None, {**TARGET, "namespace": "other"}, {**TARGET, "name": "gone"}])
async def test_address_of_no_pod_in_the_namespace_is_ignored(cluster: Cluster, target: Json | None) -> None:
    await serve(cluster, target=target)
    with pytest.raises(ServiceUnavailable, match='no endpoints available for service "web:http"'):
        await locate(cluster, "web:http")


async def test_address_that_the_pod_lacks_is_ignored(cluster: Cluster) -> None:
    await serve(cluster, ip="10.1.1.2")
    with pytest.raises(ServiceUnavailable):
        await locate(cluster, "web:http")


async def test_connection_uses_the_canonical_address(cluster: Cluster) -> None:
    await serve(cluster, ip="0177.0.0.1")
    assert (await locate(cluster, "web:http")).host == "177.0.0.1"


async def test_a_request_reaches_the_pod_with_its_path_and_query(cluster: Cluster) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=f"{request.method} {request.path_qs}")

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        await serve(cluster, ip="127.0.0.1", port=runner.addresses[0][1])
        response = await _proxied(cluster, "/api/v1/namespaces/default/services/web:http/proxy/a/b", "c=d")
        assert response.status == 200
        assert not isinstance(response.body, bytes)
        assert b"".join([chunk async for chunk in response.body]) == b"GET /a/b?c=d"
    finally:
        await runner.cleanup()


async def _proxied(cluster: Cluster, path: str, query: str) -> Response:
    async def no_body(limit: int) -> bytes:
        return b""

    request = Request("GET", path, query, [(b"host", b"here")], no_body)
    request.info = request_info(request)
    return await cluster.storage.proxy.connect(CONTEXT, request.info.name, request)
