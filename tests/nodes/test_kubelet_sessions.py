"""Logs, sessions, ports and metrics of pods on a simulated node, through a whole server."""

from __future__ import annotations

import asyncio
import re
import ssl
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson
import pytest
import pytest_asyncio
from awaiting import until, until_gone
from patience import PATIENCE
from whole_server import whole_server

from pilothouse.client import Client, DeleteOptions, Json
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

POD = "/api/v1/namespaces/default/pods/web"
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
BEHAVIOR = {
    "containers": {
        "told": {
            "logs": "first\nsecond\nthird",
            "exec": [{"command": ["status"], "stdout": "fine\n", "stderr": "almost\n", "exitCode": 7}],
            "cpu": "250m",
            "memory": "10%",
        }
    }
}
CONTAINERS: list[Json] = [
    {
        "name": "app",
        "image": "nginx",
        "command": ["sh", "-c", "echo hello; sleep 3600; echo later"],
        "ports": [{"containerPort": 8080}],
    },
    {"name": "told", "image": "nginx", "resources": {"requests": {"cpu": "2", "memory": "100Mi"}}},
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api() -> AsyncIterator[API]:
    """A server on which the pod web runs."""
    async with whole_server(simulated_nodes=1, simulation_delay="10ms") as api:
        annotations = {"pilothouse.dev/behavior": orjson.dumps(BEHAVIOR).decode()}
        pods = client(api).resource("v1", "pods", namespace="default")
        spec = {"nodeName": "node-1", "containers": CONTAINERS}
        await pods.create({"metadata": {"name": "web", "annotations": annotations}, "spec": spec})
        await until(pods, "web", is_ready)
        yield api


def client(api: API) -> Client:
    return api.client(in_process=True)


def is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


async def log(api: API, query: str = "container=told") -> str:
    answer = await api.request("GET", f"{POD}/log?{query}")
    assert answer.status == 200, answer.body
    return answer.body.decode()


@asynccontextmanager
async def session(api: API, target: str, *protocols: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    trust = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=api.ca))
    headers = {"Authorization": f"Bearer {api.token}"}
    async with (
        aiohttp.ClientSession(api.url, connector=trust, headers=headers) as opened,
        opened.ws_connect(f"{POD}/{target}", protocols=protocols) as socket,
    ):
        yield socket


async def heard(socket: aiohttp.ClientWebSocketResponse) -> dict[int, bytes]:
    """What comes on each channel until the end."""
    channels: dict[int, bytes] = {}
    async with asyncio.timeout(PATIENCE):
        async for message in socket:
            channels[message.data[0]] = channels.get(message.data[0], b"") + message.data[1:]
    return channels


async def test_logs_are_cut_as_asked(api: API) -> None:
    assert await log(api, "container=app") == "hello\n"
    assert await log(api) == "first\nsecond\nthird\n"
    assert await log(api, "container=told&tailLines=1") == "third\n"
    assert await log(api, "container=told&limitBytes=9") == "first\nsec"
    assert await log(api, "container=told&sinceTime=2999-01-01T00:00:00Z") == ""
    assert re.match(r"\d{4}-.*Z first\n", await log(api, "container=told&timestamps=true"))


async def test_a_container_that_ran_once_has_no_previous_log(api: API) -> None:
    answer = await api.request("GET", f"{POD}/log?container=told&previous=true")
    assert answer.status == 400
    assert answer.json["message"] == 'previous terminated container "told" in pod "web" not found'


@pytest.mark.parametrize("protocol", [None, "binary.k8s.io", "base64.binary.k8s.io"])
async def test_a_log_comes_over_a_websocket_after_an_empty_message(api: API, protocol: str | None) -> None:
    protocols = ("other.k8s.io", protocol) if protocol else ()
    async with session(api, "log?container=told&tailLines=2", *protocols) as socket:
        assert socket.protocol == protocol
        messages = [message async for message in socket]
    is_base64 = protocol == "base64.binary.k8s.io"
    assert {each.type for each in messages} == {aiohttp.WSMsgType.TEXT if is_base64 else aiohttp.WSMsgType.BINARY}
    first, *rest = (each.data for each in messages)
    assert not first
    assert b"".join(map(b64decode, rest) if is_base64 else rest) == b"second\nthird\n"


async def test_a_websocket_for_a_log_needs_a_known_subprotocol(api: API) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with session(api, "log?container=told", "channel.k8s.io"):
            raise AssertionError("the handshake was not refused")
    assert refused.value.status == 403


async def test_a_followed_log_over_a_websocket_goes_on_until_the_client_leaves(api: API) -> None:
    async with session(api, "log?container=told&follow=true") as socket:
        first = [await socket.receive_bytes(timeout=PATIENCE) for _ in range(2)]
    assert first == [b"", b"first\nsecond\nthird\n"]


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [((), None), ((V4,), V4), ((V5, V4), V4), ((V5,), V5), (("v4.base64.channel.k8s.io",), "v4.base64.channel.k8s.io")],
)
async def test_ports_are_forwarded_over_channels_of_a_websocket(
    api: API, offered: tuple[str, ...], chosen: str | None
) -> None:
    async with session(api, "portforward?ports=80,8080", *offered) as socket:
        assert socket.protocol == chosen
        is_base64 = bool(chosen) and "base64" in str(chosen)

        async def received() -> tuple[int, bytes]:
            message: Any = await socket.receive(timeout=PATIENCE)
            if is_base64:
                return int(message.data[0]), b64decode(message.data[1:])
            return message.data[0], message.data[1:]

        assert [await received() for _ in range(4)] == [
            (0, b"\x50\x00"),
            (1, b"\x50\x00"),
            (2, b"\x90\x1f"),
            (3, b"\x90\x1f"),
        ]
        request = b"GET / HTTP/1.1\r\nHost: web\r\n\r\n"
        await (
            socket.send_str("2" + b64encode(request).decode()) if is_base64 else socket.send_bytes(b"\x02" + request)
        )
        channel, answer = await received()
    assert channel == 2
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b":8080\n" in answer


@pytest.mark.parametrize(
    ("query", "status"), [("", 400), ("?ports=0", 400), ("?ports=70000", 400), ("?ports=80&protocol=unknown", 403)]
)
async def test_channels_to_ports_need_ports_and_a_known_subprotocol(api: API, query: str, status: int) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with session(api, f"portforward{query}", "channel.k8s.io" if "unknown" in query else V4):
            raise AssertionError("the handshake was not refused")
    assert refused.value.status == status


async def test_a_session_in_version_five_is_translated(api: API) -> None:
    query = "exec?container=app&stdin=1&stdout=1&stderr=1&command=sh&command=-c&command="
    async with session(api, query + quote("cat; echo no >&2; exit 5"), V5) as socket:
        assert socket.protocol == V5
        await socket.send_bytes(b"\0typed")
        await socket.send_bytes(b"\0 more")
        await socket.send_bytes(b"\xff\0")  # nothing more to type
        channels = await heard(socket)
    assert (channels[1], channels[2]) == (b"typed more", b"no\n")
    status = orjson.loads(channels[3])
    assert (status["reason"], status["details"]["causes"][0]["message"]) == ("NonZeroExitCode", "5")


async def test_much_output_comes_whole_though_the_client_is_slow(api: API) -> None:
    async with session(api, "exec?container=app&stdin=1&stdout=1&command=cat", V5) as socket:
        piece = b"\0" + b"x" * 65536

        async def write() -> None:
            for _ in range(64):
                await socket.send_bytes(piece)
            await socket.send_bytes(b"\xff\0")

        writing = asyncio.create_task(write())
        await asyncio.sleep(0.1)
        channels = await heard(socket)
        await writing
    assert len(channels[1]) == 64 * 65536
    assert orjson.loads(channels[3])["status"] == "Success"


async def test_older_versions_are_passed_on_to_the_kubelet(api: API) -> None:
    async with session(api, "exec?container=app&stdout=1&command=hostname", V4) as socket:
        channels = await heard(socket)
    assert (channels[1], orjson.loads(channels[3])["status"]) == (b"web\n", "Success")
    async with session(api, "exec?container=app&stdout=1&command=hostname", "base64.channel.k8s.io") as socket:
        texts = [message.data async for message in socket]
    assert texts == ["1", "1d2ViCg=="]


async def test_a_kubelet_that_speaks_version_five_is_left_to_it(api: API) -> None:
    nodes = client(api).resource("v1", "nodes")
    patch = {"status": {"declaredFeatures": ["ExtendWebSocketsToKubelet"]}}
    await nodes.patch("node-1", patch, subresource="status")
    async with session(api, "exec?container=app&stdin=1&stdout=1&command=cat", V5) as socket:
        await socket.send_bytes(b"\0typed")
        await socket.send_bytes(b"\xff\0")
        channels = await heard(socket)
    assert (channels[1], orjson.loads(channels[3])["status"]) == (b"typed", "Success")
    await nodes.patch("node-1", {"status": {"declaredFeatures": None}}, subresource="status")


async def test_commands_are_answered_as_the_behavior_says(api: API) -> None:
    query = "exec?container=told&stdout=1&stderr=1&command=status&command=--all"
    async with session(api, query, V5) as socket:
        channels = await heard(socket)
    assert (channels[1], channels[2]) == (b"fine\n", b"almost\n")
    assert orjson.loads(channels[3])["details"]["causes"][0]["message"] == "7"


async def test_what_goes_wrong_behind_comes_on_the_channel_for_errors(api: API) -> None:
    async with session(api, "exec?container=app&command=true", V5) as socket:
        channels = await heard(socket)
    expected = (
        "Internal error occurred: unable to upgrade connection: you must specify at least 1 of stdin, stdout, stderr"
    )
    assert orjson.loads(channels[3])["message"] == expected


async def test_config_maps_secrets_and_fields_are_files_and_variables(api: API) -> None:
    core = client(api)
    await core.resource("v1", "configmaps", namespace="default").create(
        {"metadata": {"name": "settings"}, "data": {"colour": "blue", "size": "large"}}
    )
    await core.resource("v1", "secrets", namespace="default").create(
        {"metadata": {"name": "hidden"}, "stringData": {"password": "pw"}}
    )
    projected = {
        "sources": [
            {"secret": {"name": "hidden"}},
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        ]
    }
    volumes = [{"name": "v", "configMap": {"name": "settings"}}, {"name": "p", "projected": projected}]
    script = "cat /etc/settings/colour /one /etc/projected/password /etc/projected/labels; echo; env"
    container = {
        "name": "c",
        "image": "x",
        "command": ["sh", "-c", script],
        "volumeMounts": [
            {"name": "v", "mountPath": "/etc/settings"},
            {"name": "v", "mountPath": "/one", "subPath": "size"},
            {"name": "p", "mountPath": "/etc/projected"},
        ],
        "envFrom": [{"prefix": "SET_", "configMapRef": {"name": "settings"}}],
        "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "hidden", "key": "password"}}}],
    }
    spec = {"nodeName": "node-1", "containers": [container], "volumes": volumes}
    pods = core.resource("v1", "pods", namespace="default")
    await pods.create({"metadata": {"name": "mounted", "labels": {"app": "m"}}, "spec": spec})
    await until(pods, "mounted", lambda pod: "containerStatuses" in (pod.get("status") or {}))
    await until(pods, "mounted", lambda pod: "waiting" not in pod["status"]["containerStatuses"][0]["state"])
    answer = await api.request("GET", POD.replace("web", "mounted") + "/log")
    files, *variables = answer.body.decode().splitlines()
    assert files == 'bluelargepwapp="m"'
    assert {"SET_colour=blue", "SET_size=large", "PASSWORD=pw"} <= {*variables}


async def test_a_terminal_shows_what_is_typed(api: API) -> None:
    async with session(api, "exec?container=app&stdin=1&stdout=1&tty=1&command=sh", V5) as socket:
        await socket.send_bytes(b"\4" + orjson.dumps({"Width": 80, "Height": 24}))
        await socket.send_bytes(b"\0echo hx\x7fi\r")
        await socket.send_bytes(b"\0exit\r")
        channels = await heard(socket)
    assert channels[1] == b"/ # echo hx\b \bi\r\nhi\r\n/ # exit\r\n"


async def test_commands_are_run_by_post_only(api: API) -> None:
    target = "/api/v1/nodes/node-1/proxy/run/default/web/app?cmd=echo+hello"
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        assert (await api.request(method, target)).status == 405
    answer = await api.request("POST", target)
    assert (answer.status, answer.body) == (200, b"hello\n")


async def test_who_does_not_show_the_right_certificate_is_refused(api: API) -> None:
    answer = await api.request("GET", "/api/v1/nodes/node-1/proxy/healthz")
    assert (answer.status, answer.body) == (200, b"ok")
    pki = Path(api.ca).parent
    kubelets = pki.parent / "simulated-kubelets"
    port = (kubelets / "port").read_text()
    trust = ssl.create_default_context(cafile=kubelets / "ca.crt")
    trust.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as stranger,
        stranger.get(f"https://localhost:{port}/nodes/node-1/pods") as refused,
    ):
        assert refused.status == 401


async def test_metrics_are_those_of_the_behavior_or_half_of_what_is_requested(api: API) -> None:
    answer = await api.request("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/web")
    used = {each["name"]: each["usage"] for each in answer.json["containers"]}
    assert used == {"app": {"cpu": "1m", "memory": "8Mi"}, "told": {"cpu": "250m", "memory": "10Mi"}}
    listed = await api.request("GET", "/apis/metrics.k8s.io/v1beta1/pods?labelSelector=app=none")
    assert (listed.json["kind"], listed.json["items"]) == ("PodMetricsList", [])
    missing = await api.request("GET", "/apis/metrics.k8s.io/v1beta1/nodes/none")
    assert missing.json["message"] == 'nodemetrics.metrics.k8s.io "none" not found'


async def test_sessions_and_logs_end_with_the_pod(api: API) -> None:
    following = asyncio.create_task(log(api, "container=told&follow=true"))
    pods = client(api).resource("v1", "pods", namespace="default")
    async with session(api, "attach?container=told&stdout=1", V5) as socket:
        first: Any = await socket.receive()
        assert first.data == b"\x01"
        second: Any = await socket.receive()
        assert second.data == b"\x01first\nsecond\nthird\n"
        more = orjson.loads(orjson.dumps(BEHAVIOR))
        more["containers"]["told"]["logs"] += "\nfourth"
        annotations = {"pilothouse.dev/behavior": orjson.dumps(more).decode()}
        await pods.patch("web", {"metadata": {"annotations": annotations}})
        third: Any = await socket.receive()
        assert third.data == b"\x01fourth\n"
        await pods.delete("web", DeleteOptions(grace_period_seconds=0))
        await until_gone(pods, "web")
        channels = await heard(socket)
    assert orjson.loads(channels[3])["status"] == "Success"
    assert await following == "first\nsecond\nthird\nfourth\n"
