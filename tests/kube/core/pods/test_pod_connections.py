"""Logs, exec, port-forward and proxies, over real sockets to what stands for a kubelet and for a pod."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from kubelet_double import Backend, listening
from patience import PATIENCE
from sample_pods import container, pod
from tls_backends import own_address
from whole_server import whole_server

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer as Verdict
from pilothouse.apiserver.authz.interface import Attributes, Decision
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.request_info import request_info
from pilothouse.apiserver.serving.server import Server, insecure_endpoint
from pilothouse.controlplane.certificates.ensure import ensure_certificates
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.kube.core.pods.connect.kubelet import KubeletConfig
from pilothouse.kube.core.pods.connect.storages import ensure_may_create
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.objects import Json
from pilothouse.testing import API, Answer

PODS = "/api/v1/namespaces/default/pods"
ASK = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> CertificatePaths:
    return ensure_certificates(tmp_path_factory.mktemp("data"), bind_address="127.0.0.1")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as started:
        yield started


@pytest.fixture
async def kubelet(server: API, pki: CertificatePaths) -> AsyncIterator[Backend]:
    """The kubelet of the node n."""
    async with listening("127.0.0.1", pki) as backend:
        await put_node(server, "127.0.0.1", backend.port)
        yield backend


async def put_node(server: API, address: str, port: int) -> None:
    await server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    status = {
        "addresses": [{"type": "InternalIP", "address": address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    patched = await server.request(
        "PATCH", "/api/v1/nodes/n/status", {"status": status}, media="application/merge-patch+json"
    )
    assert patched.status == 200, patched.body


async def create(server: API, *names: str, node: str = "n", **more: Any) -> None:
    parts = [container(name=name, **more) for name in names or ("c",)]
    spec: Json = {"nodeName": node} if node else {}
    answer = await server.request("POST", PODS, pod(*parts, meta={"name": "p"}, **spec))
    assert answer.status == 201, answer.body


@dataclass
class Raw:
    token: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, target: str, headers: str = "") -> str:
        head = f"GET {target} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {self.token}\r\n{headers}\r\n"
        self.writer.write(head.encode())
        async with asyncio.timeout(PATIENCE):
            return (await self.reader.readuntil(b"\r\n\r\n")).decode()

    async def read(self, size: int) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await self.reader.readexactly(size)


@asynccontextmanager
async def over_a_socket(server: API) -> AsyncIterator[Raw]:
    assert server.handler is not None
    serving = Server(server.handler, [insecure_endpoint("127.0.0.1", 0)])
    await serving.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
    try:
        yield Raw(server.token, reader, writer)
    finally:
        writer.close()
        await serving.abort()


async def test_a_log_is_read_from_the_kubelet(server: API, kubelet: Backend) -> None:
    await create(server)
    query = "follow=true&tailLines=5&sinceSeconds=3&timestamps=true"
    answer = await server.request("GET", f"{PODS}/p/log?{query}")
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"first\nsecond\n", "text/plain")
    (asked,) = kubelet.heard
    assert asked.line == (
        "GET /containerLogs/default/p/c?follow=true&sinceSeconds=3&tailLines=5&timestamps=true HTTP/1.1"
    )
    assert "authorization" not in asked.headers


async def test_a_pod_without_a_node_has_an_empty_log(server: API) -> None:
    await create(server, node="")
    answer = await server.request("GET", f"{PODS}/p/log")
    assert (answer.status, answer.body) == (204, b"")


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("", 400, "a container name must be specified for pod p, choose one of: [broken absent]"),
        ("container=x", 400, "container x is not valid for pod p"),
        ("container=broken", 500, "Internal error occurred: oops"),
        ("container=absent", 404, "the server could not find the requested resource ( pods/log p)"),
        (
            "tailLines=-1&limitBytes=0",
            422,
            'PodLogOptions "p" is invalid: [tailLines: Invalid value: -1: must be greater than or equal to 0, '
            "limitBytes: Invalid value: 0: must be greater than 0]",
        ),
        (
            "sinceSeconds=1&sinceTime=2024-01-01T00:00:00Z",
            422,
            'PodLogOptions "p" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be '
            "specified",
        ),
        ("sinceTime=yesterday", 400, 'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00"'),
        ("tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
    ],
)
async def test_failed_log_request_reports_the_reason(
    server: API, kubelet: Backend, query: str, status: int, message: str
) -> None:
    await create(server, "broken", "absent")
    answer = await server.request("GET", f"{PODS}/p/log?{query}")
    assert answer.status == status
    assert answer.json["message"].startswith(message)


@pytest.mark.parametrize("action", ["exec", "attach", "portforward"])
@pytest.mark.parametrize(
    ("node", "headers", "status", "message"),
    [
        ("", ASK, 400, "pod p does not have a host assigned"),
        ("n", "", 400, "Upgrade request required"),
        ("gone", ASK, 404, 'nodes "gone" not found'),
    ],
)
async def test_failed_session_request_reports_the_reason(
    server: API, kubelet: Backend, action: str, node: str, headers: str, status: int, message: str
) -> None:
    await create(server, node=node)
    pairs = dict(line.lower().split(": ") for line in headers.splitlines())
    answer = await server.request("GET", f"{PODS}/p/{action}", **pairs)
    assert (answer.status, answer.json["message"]) == (status, message)


async def test_unreachable_kubelet_is_reported(server: API, pki: CertificatePaths) -> None:
    async with listening("127.0.0.1", pki) as closed:
        port = closed.port
    await put_node(server, "127.0.0.1", port)
    await create(server)
    log = await server.request("GET", f"{PODS}/p/log")
    place = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    assert (log.status, log.json["message"]) == (
        500,
        f'Get "https://127.0.0.1:{port}/containerLogs/default/p/c": {place}',
    )
    exec_ = await server.request("GET", f"{PODS}/p/exec", connection="Upgrade", upgrade="SPDY/3.1")
    assert (exec_.status, exec_.json["message"]) == (500, f"error dialing backend: {place}")


async def test_node_without_address_is_reported(server: API) -> None:
    await server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    await create(server)
    answer = await server.request("GET", f"{PODS}/p/log")
    assert (answer.status, answer.json["message"]) == (500, "no preferred addresses found; known addresses: []")


@pytest.mark.parametrize(
    ("target", "asked_for"),
    [
        (
            "exec?command=ls&command=-l&stdin=true&stdout=true&tty=false&container=c",
            "/exec/default/p/c?command=ls&command=-l&input=1&output=1",
        ),
        ("attach?stderr=1&tty=true", "/attach/default/p/c?error=1&tty=1"),
        ("portforward?ports=80&ports=81,82", "/portForward/default/p?port=80%2C81%2C82"),
    ],
)
async def test_a_session_passes_bytes_both_ways(server: API, kubelet: Backend, target: str, asked_for: str) -> None:
    await create(server)
    async with over_a_socket(server) as client:
        head = await client.ask(f"{PODS}/p/{target}", ASK + "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n")
        assert head.startswith("HTTP/1.1 101 ")
        assert "upgrade: SPDY/3.1" in head
        assert await client.read(8) == b"welcome:"
        client.writer.write(b"hello " * 50_000)
        assert await client.read(300_000) == b"HELLO " * 50_000
    (asked,) = kubelet.heard
    assert asked.line == f"GET {asked_for} HTTP/1.1"
    assert asked.headers["x-stream-protocol-version"] == "v4.channel.k8s.io"
    assert asked.headers["x-forwarded-for"] == "127.0.0.1"
    assert "authorization" not in asked.headers


async def test_a_session_that_the_kubelet_refuses_is_refused(server: API, kubelet: Backend) -> None:
    await create(server, "refused")
    answer = await server.request("GET", f"{PODS}/p/exec", connection="Upgrade", upgrade="SPDY/3.1")
    assert (answer.status, answer.body) == (403, b"no")


async def test_rejected_session_closes_the_kubelet_connection(server: API, kubelet: Backend) -> None:
    """CVE-2018-1002105: a connection that stayed open carried further requests to the backend, as the server itself."""
    await create(server, "refused")
    async with over_a_socket(server) as client:
        assert (await client.ask(f"{PODS}/p/exec", ASK)).startswith("HTTP/1.1 403 ")
        assert await client.read(2) == b"no"
        assert (await client.ask("/runningpods/")).startswith("HTTP/1.1 404 ")
    assert len(kubelet.heard) == 1
    assert kubelet.smuggled == b""


async def test_pipelined_request_after_a_rejected_session_is_not_forwarded(server: API, kubelet: Backend) -> None:
    await create(server, "refused")
    async with over_a_socket(server) as client:
        hidden = f"GET /runningpods/ HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        head = f"GET {PODS}/p/exec HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {server.token}\r\n{ASK}\r\n{hidden}"
        client.writer.write(head.encode())
        async with asyncio.timeout(PATIENCE):
            answer = await client.reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403 ")
    assert [asked.line for asked in kubelet.heard] == ["GET /exec/default/p/refused HTTP/1.1"]
    assert b"runningpods" not in kubelet.smuggled


async def test_redirect_of_a_session_is_not_followed(server: API, kubelet: Backend, pki: CertificatePaths) -> None:
    """CVE-2020-8559: a node that redirected a session reached other nodes with the rights of the server."""
    await create(server, "redirected")
    async with listening("127.0.0.1", pki) as other:
        kubelet.redirects_to = other.port
        answer = await server.request("GET", f"{PODS}/p/exec", connection="Upgrade", upgrade="SPDY/3.1")
        assert answer.status >= 300
        assert other.heard == []
    assert len(kubelet.heard) == 1


async def test_closing_one_end_of_a_session_closes_the_other(server: API, kubelet: Backend) -> None:
    await create(server)
    async with over_a_socket(server) as client:
        await client.ask(f"{PODS}/p/exec", ASK)
        client.writer.write_eof()
        assert await client.read(8) == b"welcome:"
        async with asyncio.timeout(PATIENCE):
            assert await client.reader.read() == b""


class MayOnlyRead:
    async def authorize(self, attributes: Attributes) -> Verdict:
        return Verdict(Decision.ALLOW if attributes.verb == "get" else Decision.NO_OPINION, "only reading")


async def test_session_requires_the_create_permission() -> None:
    async def no_body(limit: int) -> bytes:
        return b""

    request = Request("GET", f"{PODS}/p/exec", "", [], no_body)
    request.info, request.user = request_info(request), User("u")
    with pytest.raises(Forbidden, match='pods "p" is forbidden: only reading'):
        await ensure_may_create(request, MayOnlyRead())
    request.info = replace(request.info, verb="create")
    await ensure_may_create(request, MayOnlyRead())


@pytest.fixture
async def app(server: API) -> AsyncIterator[Backend]:
    """What the pod p serves, on an address that is not this machine's own."""
    address = own_address()
    if not address:
        pytest.skip("this machine has only a loopback address")
    async with listening(address) as backend:
        await create(server, node="", ports=[{"containerPort": backend.port}])
        status = {"status": {"podIP": address}}
        patched = await server.request("PATCH", f"{PODS}/p/status", status, media="application/merge-patch+json")
        assert patched.status == 200, patched.body
        yield backend


async def test_a_proxy_passes_requests_on(server: API, app: Backend) -> None:
    answer = await server.request("POST", f"{PODS}/p/proxy/a/b c?x=1", {"k": 1}, cookie="c=d")
    assert (answer.status, answer.body) == (200, b'POST /a/b%20c {"k":1}')
    assert answer.headers["x-own"] == "1"
    assert "access-control-allow-origin" not in answer.headers
    (asked,) = app.heard
    assert asked.line == "POST /a/b%20c?x=1 HTTP/1.1"
    assert asked.headers["cookie"] == "c=d"
    assert asked.headers["x-forwarded-uri"] == f"{PODS}/p/proxy/a/b%20c"
    assert "authorization" not in asked.headers


async def test_proxy_without_path_redirects_to_a_slash(server: API, app: Backend) -> None:
    answer = await server.request("GET", f"{PODS}/p/proxy?x=1")
    assert (answer.status, answer.headers["location"]) == (301, f"{PODS}/p/proxy/?x=1")


async def test_redirects_stay_within_the_proxy(server: API, app: Backend) -> None:
    answer = await server.request("GET", f"{PODS}/p:{app.port}/proxy/moved")
    assert (answer.status, answer.headers["location"]) == (302, f"{PODS}/p:{app.port}/proxy/there?x=1")


@pytest.mark.parametrize("wish", ["", "Connection: Upgrade\r\nUpgrade: websocket\r\n"])
async def test_escaped_path_is_forwarded_unchanged(server: API, app: Backend, wish: str) -> None:
    """A line break that the client escaped would otherwise end the request line, and what follows would be headers."""
    async with over_a_socket(server) as client:
        await client.ask(f"{PODS}/p/proxy/a%20HTTP/1.1%0d%0aX-Evil:%201?b=c", wish)
    (asked,) = app.heard
    assert asked.line == "GET /a%20HTTP/1.1%0D%0AX-Evil:%201?b=c HTTP/1.1"
    assert "x-evil" not in asked.headers


async def test_proxy_forwards_upgrades(server: API, app: Backend) -> None:
    async with over_a_socket(server) as client:
        head = await client.ask(f"{PODS}/p/proxy/ws?a=b", "Connection: Upgrade\r\nUpgrade: websocket\r\n")
        assert head.startswith("HTTP/1.1 101 ")
        assert await client.read(8) == b"welcome:"
    assert app.heard[0].line == "GET /ws?a=b HTTP/1.1"


@pytest.mark.parametrize(
    ("name", "message"),
    [("p", "address not allowed"), ("a:p:1", 'invalid pod request "a:p:1"'), ("p:x", 'invalid port "x"')],
)
async def test_proxy_rejects_special_addresses(server: API, name: str, message: str) -> None:
    await create(server, node="")
    status: Json = {"status": {"podIP": "127.0.0.1" if name == "p" else "192.0.2.9"}}
    await server.request("PATCH", f"{PODS}/p/status", status, media="application/merge-patch+json")
    answer = await server.request("GET", f"{PODS}/{name}/proxy/")
    assert (answer.status, answer.json["message"]) == (400, message)


async def test_unreachable_pod_is_reported(server: API, app: Backend) -> None:
    answer: Answer = await server.request("GET", f"{PODS}/p:1/proxy/")
    assert answer.status == 503
    assert answer.json["message"] == (
        f"error trying to reach service: dial tcp {own_address()}:1: connect: connection refused"
    )


async def test_a_node_is_proxied_to_by_its_kubelet_or_by_any_port(
    server: API, app: Backend, pki: CertificatePaths
) -> None:
    async with listening(own_address(), pki) as kubelet:
        await put_node(server, own_address(), kubelet.port)
        assert (await server.request("GET", "/api/v1/nodes/n/proxy/healthz")).body == b"GET /healthz "
        other = await server.request("GET", f"/api/v1/nodes/n:{app.port}/proxy/x")
        assert (other.body, len(kubelet.heard)) == (b"GET /x ", 1)


async def test_kubelets_are_verified_where_an_authority_is_named(pki: CertificatePaths) -> None:
    config = KubeletConfig(
        certificate_authority=str(pki.ca_cert),
        client_certificate=str(pki.admin_cert),
        client_key=str(pki.admin_key),
    )
    assert config.tls.check_hostname
    assert not config.unverified_tls.check_hostname
    assert not KubeletConfig().tls.check_hostname
    async with listening("127.0.0.1", pki) as backend:
        _, writer = await asyncio.open_connection(
            "127.0.0.1", backend.port, ssl=config.tls, server_hostname="127.0.0.1"
        )
        writer.close()
