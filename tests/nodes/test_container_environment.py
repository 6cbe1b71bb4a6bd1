"""Variables, users and volume paths of simulated containers, as the kubelet sets them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from awaiting import until
from whole_server import whole_server

from pilothouse.client import Json, ResourceClient
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api() -> AsyncIterator[API]:
    async with whole_server(simulated_nodes=1, simulation_delay="10ms") as api:
        yield api


def pods_of(api: API, namespace: str = "default") -> ResourceClient:
    return api.client(in_process=True).resource("v1", "pods", namespace=namespace)


async def output(api: API, name: str, script: str, *, namespace: str = "default", spec: Any = None, **more: Any) -> str:
    """Return the log of a pod that runs the script."""
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", script], **more}
    whole = {"nodeName": "node-1", "containers": [container], **(spec or {})}
    pods = pods_of(api, namespace)
    await pods.create({"metadata": {"name": name, "annotations": {"sub": ""}}, "spec": whole})
    await until(pods, name, has_started)
    answer = await api.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}/log")
    assert answer.status == 200, answer.body
    return answer.body.decode()


def has_started(pod: Json) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any("waiting" not in each["state"] for each in statuses)


def waiting(pod: Json) -> Json:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    found: Json = next((each["state"].get("waiting") or {} for each in statuses), {})
    return found


async def test_variables_of_resources_are_counted_in_their_divisor(api: API) -> None:
    def variable(name: str, resource: str, divisor: str) -> Json:
        return {"name": name, "valueFrom": {"resourceFieldRef": {"resource": resource, "divisor": divisor}}}

    env = [
        variable("CPUS", "requests.cpu", "0"),
        variable("MILLIS", "requests.cpu", "1m"),
        variable("MEBIS", "limits.memory", "1Mi"),
        variable("BYTES", "limits.memory", "0"),
        variable("NODE", "limits.cpu", "0"),
    ]
    resources = {"requests": {"cpu": "250m", "memory": "1Mi"}, "limits": {"memory": "64Mi"}}
    lines = await output(api, "resources", "env", env=env, resources=resources)
    assert {"CPUS=1", "MILLIS=250", "MEBIS=64", "BYTES=67108864", "NODE=32"} <= {*lines.splitlines()}


async def test_a_volume_shows_resources_of_any_container_of_the_pod(api: API) -> None:
    selector = {"containerName": "c", "resource": "limits.memory", "divisor": "1Mi"}
    volume = {"name": "v", "downwardAPI": {"items": [{"path": "memory", "resourceFieldRef": selector}]}}
    mounts = [{"name": "v", "mountPath": "/about"}]
    resources = {"limits": {"memory": "32Mi"}}
    text = await output(
        api, "shown", "cat /about/memory", spec={"volumes": [volume]}, volumeMounts=mounts, resources=resources
    )
    assert text == "32\n"


async def test_services_of_the_namespace_and_the_api_server_have_variables(api: API) -> None:
    core = api.client(in_process=True)
    await core.resource("v1", "namespaces").create({"metadata": {"name": "linked"}})
    services = core.resource("v1", "services", namespace="linked")
    ports = [{"name": "http", "port": 80}, {"name": "dns-udp", "port": 53, "protocol": "UDP"}]
    created = await services.create({"metadata": {"name": "my-web"}, "spec": {"ports": ports}})
    await services.create({"metadata": {"name": "headless"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}})
    await core.resource("v1", "services", namespace="default").create(
        {"metadata": {"name": "elsewhere"}, "spec": {"ports": [{"port": 80}]}}
    )
    address = created["spec"]["clusterIP"]
    env = [{"name": "URL", "value": "http://$(MY_WEB_SERVICE_HOST):$(MY_WEB_SERVICE_PORT)/"}]
    lines = {*(await output(api, "linked", "env", namespace="linked", env=env)).splitlines()}
    assert {
        f"URL=http://{address}:80/",
        f"MY_WEB_SERVICE_HOST={address}",
        "MY_WEB_SERVICE_PORT=80",
        "MY_WEB_SERVICE_PORT_HTTP=80",
        "MY_WEB_SERVICE_PORT_DNS_UDP=53",
        f"MY_WEB_PORT=tcp://{address}:80",
        f"MY_WEB_PORT_80_TCP=tcp://{address}:80",
        "MY_WEB_PORT_80_TCP_PROTO=tcp",
        "MY_WEB_PORT_80_TCP_PORT=80",
        f"MY_WEB_PORT_80_TCP_ADDR={address}",
        f"MY_WEB_PORT_53_UDP=udp://{address}:53",
        "KUBERNETES_SERVICE_PORT=443",
        "KUBERNETES_SERVICE_PORT_HTTPS=443",
    } <= lines
    assert any(line.startswith("KUBERNETES_SERVICE_HOST=10.") for line in lines)
    assert not any(line.startswith(("HEADLESS_", "ELSEWHERE_")) for line in lines)


async def test_without_service_links_only_the_api_server_has_variables(api: API) -> None:
    env = [{"name": "KUBERNETES_SERVICE_PORT", "value": "1"}]
    spec = {"enableServiceLinks": False}
    lines = (await output(api, "unlinked", "env", spec=spec, env=env)).splitlines()
    assert "KUBERNETES_SERVICE_PORT=1" in lines
    names = {line.partition("_")[0] for line in lines if "_SERVICE_" in line}
    assert names == {"KUBERNETES"}


@pytest.mark.parametrize(
    ("name", "pod", "own", "expected"),
    [
        ("root", {}, {}, "uid=0(root) gid=0(root) groups=0(root)\n0\nroot\n"),
        (
            "user",
            {"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "supplementalGroups": [4000]},
            {},
            "uid=1000 gid=3000 groups=2000,3000,4000\n1000\n",
        ),
        (
            "own",
            {"runAsUser": 1000},
            {"runAsUser": 65534},
            "uid=65534(nobody) gid=0(root) groups=0(root)\n65534\nnobody\n",
        ),
    ],
)
async def test_processes_run_as_the_user_of_their_security_context(
    api: API, name: str, pod: Json, own: Json, expected: str
) -> None:
    spec = {"securityContext": pod}
    assert await output(api, f"id-{name}", "id; id -u; whoami 2> /dev/null", spec=spec, securityContext=own) == expected


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("missing", "", "missing value for PART"),
        ("absolute", "/tmp", "error SubPath `/tmp` must not be an absolute path"),
        ("back", "..", "unable to provision SubPath `..`: must not contain '..'"),
    ],
)
async def test_an_invalid_sub_path_expression_keeps_the_container_waiting(
    api: API, name: str, value: str, message: str
) -> None:
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["sleep", "3600"],
        "env": [{"name": "PART", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['sub']"}}}],
        "volumeMounts": [{"name": "v", "mountPath": "/data", "subPathExpr": "$(PART)"}],
    }
    spec = {"nodeName": "node-1", "containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}
    pods = pods_of(api)
    await pods.create({"metadata": {"name": name, "annotations": {"sub": value}}, "spec": spec})
    blocked = await until(pods, name, lambda pod: waiting(pod).get("reason") == "CreateContainerConfigError")
    assert waiting(blocked)["message"] == message
    await pods.patch(name, {"metadata": {"annotations": {"sub": "right"}}})
    await until(pods, name, has_started)


async def test_a_sub_path_expression_selects_a_file_of_the_volume(api: API) -> None:
    await (
        api.client(in_process=True)
        .resource("v1", "configmaps", namespace="default")
        .create({"metadata": {"name": "files"}, "data": {"one": "1", "two": "2"}})
    )
    env = [{"name": "FILE", "value": "two"}]
    mounts = [{"name": "v", "mountPath": "/chosen", "subPathExpr": "$(FILE)"}]
    spec = {"volumes": [{"name": "v", "configMap": {"name": "files"}}]}
    assert await output(api, "chosen", "cat /chosen", spec=spec, env=env, volumeMounts=mounts) == "2\n"
