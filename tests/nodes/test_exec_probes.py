"""Exec probes whose result is known decide readiness, startup and restarts of simulated containers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest
import pytest_asyncio
from awaiting import until, until_all
from whole_server import whole_server

from pilothouse.client import Json, ResourceClient
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

SLEEP = ["sleep", "3600"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api() -> AsyncIterator[API]:
    async with whole_server(simulated_nodes=1, simulation_delay="10ms", simulation_time_scale=0.01) as api:
        yield api


def pods_of(api: API) -> ResourceClient:
    return api.client(in_process=True).resource("v1", "pods", namespace="default")


async def create(api: API, name: str, container: Json, volumes: list[Json] | None = None) -> None:
    spec = {"nodeName": "node-1", "containers": [{"name": "c", "image": "busybox", **container}], "volumes": volumes}
    await pods_of(api).create({"metadata": {"name": name}, "spec": spec})


def probe(*command: str, **fields: int) -> Json:
    return {"exec": {"command": [*command]}, "periodSeconds": 1, "failureThreshold": 1, **fields}


def status_of(pod: Json) -> Json:
    found: Json = ((pod.get("status") or {}).get("containerStatuses") or [{}])[0]
    return found


def is_ready(pod: Json) -> bool:
    return bool(status_of(pod).get("ready"))


def restarts(pod: Json) -> int:
    return int(status_of(pod).get("restartCount") or 0)


@pytest.mark.parametrize(
    ("name", "command", "image_command"),
    [
        ("true", ["/bin/true"], SLEEP),
        ("shell", ["sh", "-c", "test -f /tmp/there && cat /tmp/there"], ["sh", "-c", "echo > /tmp/there; sleep 3600"]),
        ("unknown-program", ["pg_isready", "-U", "postgres"], SLEEP),
        ("unknown-program-in-shell", ["sh", "-c", "pg_isready || exit 1"], SLEEP),
        ("unknown-server", ["cat", "/tmp/there"], ["my-server"]),
        ("image", ["cat", "/tmp/there"], None),
        ("mounted", ["cat", "/shared/there"], SLEEP),
    ],
)
async def test_a_probe_that_succeeds_or_is_not_simulated_makes_the_container_ready(
    api: API, name: str, command: list[str], image_command: list[str] | None
) -> None:
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    container = {"command": image_command, "readinessProbe": probe(*command), "volumeMounts": mounts}
    await create(api, f"ready-{name}", container, [{"name": "shared", "emptyDir": {}}])
    await until(pods_of(api), f"ready-{name}", is_ready)


@pytest.mark.parametrize(
    ("name", "command", "image_command"),
    [
        ("false", ["/bin/false"], ["my-server"]),
        ("cat", ["cat", "/tmp/there"], SLEEP),
        ("shell", ["sh", "-c", "exit 3"], None),
        ("timeout", ["sh", "-c", "sleep 10"], SLEEP),
    ],
)
async def test_a_liveness_probe_that_fails_restarts_the_container(
    api: API, name: str, command: list[str], image_command: list[str] | None
) -> None:
    await create(api, f"dead-{name}", {"command": image_command, "livenessProbe": probe(*command)})
    await until(pods_of(api), f"dead-{name}", lambda pod: restarts(pod) > 0)


async def test_a_container_whose_readiness_probe_fails_runs_and_is_never_ready(api: API) -> None:
    container = {"command": SLEEP, "readinessProbe": probe("/bin/false"), "livenessProbe": probe("/bin/true")}
    await create(api, "unready", container)
    # A pod that was created later becomes ready after more runs of its probe than the first needs to fail.
    await create(api, "later", {"command": SLEEP, "readinessProbe": probe("true", successThreshold=50)})
    await until(pods_of(api), "later", is_ready)
    unready = status_of(await pods_of(api).get("unready"))
    assert (unready["ready"], unready["started"], unready["restartCount"]) == (False, True, 0)


async def test_a_startup_probe_that_fails_restarts_the_container_before_it_has_started(api: API) -> None:
    container = {"command": SLEEP, "startupProbe": probe("cat", "/none"), "readinessProbe": probe("/bin/true")}
    await create(api, "unstarted", container)
    restarted = await until(pods_of(api), "unstarted", lambda pod: restarts(pod) > 0)
    assert not is_ready(restarted)


async def test_the_command_of_the_container_changes_the_result(api: API) -> None:
    script = "sleep 0.3; echo ok > /tmp/health; sleep 0.6; rm -rf /tmp/health; sleep 600"
    health = probe("cat", "/tmp/health", initialDelaySeconds=40)
    await create(api, "changing", {"command": ["sh", "-c", script], "readinessProbe": health, "livenessProbe": health})
    await until(pods_of(api), "changing", is_ready)
    restarted = await until(pods_of(api), "changing", lambda pod: restarts(pod) > 0)
    assert status_of(restarted)["lastState"]["terminated"]["exitCode"] == 137
    events = api.client(in_process=True).resource("v1", "events", namespace="default")
    message = "Liveness probe failed: cat: /tmp/health: No such file or directory"
    await until_all(events, lambda found: any(each["message"].strip() == message for each in found))


async def test_a_command_from_outside_changes_the_result(api: API) -> None:
    script = "echo ok > /tmp/alive; sleep 3600"
    health = {"livenessProbe": probe("cat", "/tmp/alive"), "readinessProbe": probe("cat", "/tmp/ready")}
    await create(api, "outside", {"command": ["sh", "-c", script], **health})
    await until(pods_of(api), "outside", lambda pod: status_of(pod).get("started") is True)

    async def run(command: str) -> None:
        target = "/api/v1/nodes/node-1/proxy/run/default/outside/c?cmd="
        answer = await api.request("POST", target + quote(command))
        assert answer.status == 200, answer.body

    await run("cat /tmp/alive")
    await run("touch /tmp/ready")
    await until(pods_of(api), "outside", is_ready)
    await run("rm /tmp/ready")
    unready = await until(pods_of(api), "outside", lambda pod: not is_ready(pod))
    assert restarts(unready) == 0
    await run("rm /tmp/alive")
    await until(pods_of(api), "outside", lambda pod: restarts(pod) > 0)


async def test_a_scripted_answer_decides_the_probe(api: API) -> None:
    annotation = '{"exec": [{"command": ["pg_isready"], "exitCode": 2, "stderr": "no response"}]}'
    container = {
        "name": "c",
        "image": "postgres",
        "readinessProbe": probe("pg_isready"),
        "livenessProbe": probe("pg_isready"),
    }
    metadata = {"name": "scripted", "annotations": {"pilothouse.dev/behavior": annotation}}
    await pods_of(api).create({"metadata": metadata, "spec": {"nodeName": "node-1", "containers": [container]}})
    await until(pods_of(api), "scripted", lambda pod: restarts(pod) > 0)
    await pods_of(api).patch("scripted", {"metadata": {"annotations": {"pilothouse.dev/behavior": "{}"}}})
    await until(pods_of(api), "scripted", is_ready)


async def test_periods_and_thresholds_do_not_cost_work(api: API) -> None:
    most = 2**31 - 1
    health = probe("/bin/true", periodSeconds=1, failureThreshold=most, timeoutSeconds=most)
    container = {"command": SLEEP, "livenessProbe": health, "readinessProbe": {**health, "successThreshold": 3}}
    await create(api, "patient", container)
    await until(pods_of(api), "patient", is_ready)
    hostile = ["sh", "-c", "echo >> /tmp/x; sleep 0.001;" * 1000]
    await create(api, "hostile", {"command": hostile, "livenessProbe": probe("cat", "/tmp/x")})
    await until(pods_of(api), "hostile", lambda pod: status_of(pod).get("state", {}).get("waiting") is None)
