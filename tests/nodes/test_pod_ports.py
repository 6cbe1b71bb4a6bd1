"""Ports of simulated pods: open, closed, and with behaviour, through the proxies, port-forward and probes."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest
import pytest_asyncio
from awaiting import until, until_all
from patience import PATIENCE
from whole_server import whole_server

from pilothouse.client import Json, ResourceClient
from pilothouse.errors import Invalid
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

PODS = "/api/v1/namespaces/default/pods"
ANSWERS = [
    {"path": "/api", "body": '{"ok": true}', "contentType": "application/json"},
    {"path": "/api/broken", "status": 500, "body": "out of order"},
    {"path": "/", "port": 9090, "status": 204},
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api() -> AsyncIterator[API]:
    """A server on which the pod web runs, behind a service."""
    async with whole_server(simulated_nodes=1, simulation_delay="10ms", controllers="endpoints-controller") as api:
        await create(
            api,
            "web",
            {
                "ports": [
                    {"name": "http", "containerPort": 8080},
                    {"name": "dns", "containerPort": 53, "protocol": "UDP"},
                ],
                "livenessProbe": {"httpGet": {"path": "/healthz?full=1", "port": "http"}},
                "readinessProbe": {"tcpSocket": {"port": 7070}},
            },
            {"http": ANSWERS},
        )
        yield api


def pods_of(api: API) -> ResourceClient:
    return api.client(in_process=True).resource("v1", "pods", namespace="default")


async def create(api: API, name: str, container: Json, behavior: Json | None = None) -> None:
    annotations = {"pilothouse.dev/behavior": orjson.dumps(behavior or {}).decode()}
    metadata = {"name": name, "labels": {"app": name}, "annotations": annotations}
    spec = {"nodeName": "node-1", "containers": [{"name": "c", "image": "example.com/app", **container}]}
    await pods_of(api).create({"metadata": metadata, "spec": spec})
    await until(pods_of(api), name, is_running)


def is_running(pod: Json) -> bool:
    return status_of(pod).get("state", {}).get("running") is not None


def status_of(pod: Json) -> Json:
    found: Json = ((pod.get("status") or {}).get("containerStatuses") or [{}])[0]
    return found


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("web/proxy/", 200, "request: GET /\n"),
        ("web:8080/proxy/", 200, "request: GET /\n"),
        ("web:7070/proxy/?a=b", 200, "request: GET /?a=b\n"),
        ("web:8080/proxy/healthz", 200, "request: GET /healthz\n"),
        ("web:7070/proxy/healthz", 404, "404 page not found"),
        ("web:8080/proxy/elsewhere", 404, "404 page not found"),
        ("web:8080/proxy/api", 200, '{"ok": true}'),
        ("web:8080/proxy/api/v1", 200, '{"ok": true}'),
        ("web:8080/proxy/apiary", 404, "404 page not found"),
        ("web:8080/proxy/api/broken", 500, "out of order"),
        ("web:9090/proxy/any", 204, ""),
    ],
)
async def test_open_ports_answer_by_behavior_or_describe_the_pod(api: API, path: str, status: int, body: str) -> None:
    answer = await api.request("GET", f"{PODS}/{path}")
    assert answer.status == status
    assert body in answer.body.decode()


@pytest.mark.parametrize("port", [81, 53])
async def test_connections_to_closed_ports_are_refused(api: API, port: int) -> None:
    address = (await pods_of(api).get("web"))["status"]["podIP"]
    answer = await api.request("GET", f"{PODS}/web:{port}/proxy/")
    assert answer.status == 503
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"error trying to reach service: dial tcp {address}:{port}: connect: connection refused",
        "reason": "ServiceUnavailable",
        "code": 503,
    }


async def test_a_service_passes_on_to_the_open_port(api: API) -> None:
    core = api.client(in_process=True)
    ports = [{"name": "open", "port": 80, "targetPort": 8080}, {"name": "closed", "port": 81, "targetPort": 81}]
    spec = {"selector": {"app": "web"}, "ports": ports}
    await core.resource("v1", "services", namespace="default").create({"metadata": {"name": "web"}, "spec": spec})
    endpoints = core.resource("v1", "endpoints", namespace="default")
    await until(endpoints, "web", lambda found: bool((found.get("subsets") or [{}])[0].get("addresses")))
    services = "/api/v1/namespaces/default/services"
    opened = await api.request("GET", f"{services}/web:open/proxy/api")
    assert (opened.status, opened.body) == (200, b'{"ok": true}')
    closed = await api.request("GET", f"{services}/web:closed/proxy/")
    assert closed.status == 503
    assert closed.json["message"].endswith(":81: connect: connection refused")


async def test_forwarding_to_a_closed_port_reports_the_error(api: API) -> None:
    trust = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=api.ca))
    headers = {"Authorization": f"Bearer {api.token}"}
    async with (
        aiohttp.ClientSession(api.url, connector=trust, headers=headers) as opened,
        opened.ws_connect(f"{PODS}/web/portforward?ports=81", protocols=["v4.channel.k8s.io"]) as socket,
    ):
        messages: list[Any] = [(await socket.receive(timeout=PATIENCE)).data for _ in range(3)]
    assert messages[:2] == [b"\x00\x51\x00", b"\x01\x51\x00"]
    assert messages[2].startswith(b"\x01error forwarding port 81 to pod ")
    assert b"dial tcp4 127.0.0.1:81: connect: connection refused" in messages[2]


async def test_a_pod_without_address_is_not_proxied_to(api: API) -> None:
    spec = {"nodeName": "node-1", "containers": [{"name": "c", "image": "x"}]}
    behavior = {"pilothouse.dev/start-after": "1h"}
    await pods_of(api).create({"metadata": {"name": "slow", "annotations": behavior}, "spec": spec})
    answer = await api.request("GET", f"{PODS}/slow:80/proxy/")
    assert (answer.status, answer.json["message"]) == (400, "address not allowed")


async def test_http_probes_follow_the_behavior(api: API) -> None:
    probe = {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1}
    failing = {"http": [{"path": "/ready", "status": 503}]}
    await create(api, "probed", {"readinessProbe": probe, "livenessProbe": probe}, failing)
    pods = pods_of(api)
    restarted = await until(pods, "probed", lambda pod: status_of(pod).get("restartCount", 0) > 0)
    assert not status_of(restarted)["ready"]
    events = api.client(in_process=True).resource("v1", "events", namespace="default")
    message = "Liveness probe failed: HTTP probe failed with statuscode: 503"
    await until_all(events, lambda found: any(each["message"] == message for each in found))
    working = {"pilothouse.dev/behavior": orjson.dumps({"http": [{"path": "/ready", "status": 302}]}).decode()}
    await pods.patch("probed", {"metadata": {"annotations": working}})
    await until(pods, "probed", lambda pod: status_of(pod).get("ready") is True)


async def test_an_object_sets_the_answers_of_many_pods(api: API) -> None:
    behaviors = api.client(in_process=True).resource("simulation.pilothouse.dev/v1alpha1", "simulatedbehaviors")
    selector = {"podSelector": {"matchLabels": {"app": "many"}}}
    container = {"http": [{"port": 5000, "path": "/status", "status": 418, "body": "teapot"}]}
    kind = {"apiVersion": "simulation.pilothouse.dev/v1alpha1", "kind": "SimulatedBehavior"}
    await behaviors.create(
        {**kind, "metadata": {"name": "many"}, "spec": {"selector": selector, "container": container}}
    )
    await create(api, "many", {})
    answer = await api.request("GET", f"{PODS}/many:5000/proxy/status")
    assert (answer.status, answer.body) == (418, b"teapot")
    wrong = {"http": [{"path": "no-slash", "status": 99}]}
    with pytest.raises(Invalid):
        await behaviors.create({**kind, "metadata": {"name": "wrong"}, "spec": {"container": wrong}})
