"""A wall clock that is set while a server runs: requests, watches, tokens, nodes and controllers go on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from awaiting import until
from whole_server import CONFIG_MAPS, create_config_map

from pilothouse.client import Json, ListOptions, ResourceClient
from pilothouse.controllers import resources
from pilothouse.machinery import server_time
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.testing import API, server

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOUR, YEARS = 3600.0, 10 * 365 * 86400.0
MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1
LAST = "9999-12-31T23:59:59"


class JumpingTime:
    """Stands for the module `time` where the server takes its time from."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def time(self) -> float:
        return time.time() + self.ahead

    def monotonic(self) -> float:
        return time.monotonic()


@pytest.fixture(scope="module", name="wall")
def _wall() -> Iterator[JumpingTime]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_time, "time", jumping := JumpingTime())
        yield jumping


@pytest.fixture(autouse=True)
def _back(wall: JumpingTime) -> Iterator[None]:
    yield
    wall.ahead = 0.0


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="api")
async def _api(wall: JumpingTime) -> AsyncIterator[API]:
    async with server(simulated_nodes=1) as api:
        await until(_client(api, resources.SERVICE_ACCOUNTS), "default")
        yield api


def _client(api: API, resource: GroupVersionResource) -> ResourceClient:
    """Without a certificate, which ten years later is no longer valid."""
    return api.client(in_process=True).for_resource(resource, namespace="default")


@pytest.mark.parametrize("seconds", [HOUR, -HOUR, YEARS, -YEARS])
async def test_everything_goes_on_when_the_wall_clock_jumps(api: API, wall: JumpingTime, seconds: float) -> None:
    name = f"jump-{seconds:.0f}".replace("--", "-back-")
    before = await create_config_map(api, f"before-{name}")
    config_maps = _client(api, resources.CONFIG_MAPS)
    since = ListOptions(resource_version=before["metadata"]["resourceVersion"])
    async with await config_maps.watch(since) as watch:
        wall.ahead = seconds
        after = await create_config_map(api, f"after-{name}")
        assert (await anext(aiter(watch))).object == after
    year = time.gmtime(wall.time()).tm_year
    assert after["metadata"]["creationTimestamp"].startswith(str(year))
    await _token_works(api)
    await _pod_runs(api, name)
    node = (await api.request("GET", "/api/v1/nodes")).json["items"][0]
    assert {each["type"]: each["status"] for each in node["status"]["conditions"]}["Ready"] == "True"
    assert (await api.request("GET", "/readyz")).status == 200


async def _token_works(api: API) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    issued = await api.request("POST", path, {"spec": {}})
    assert issued.status == 201
    review = {"spec": {"token": issued.json["status"]["token"]}}
    answer = await api.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert answer.json["status"]["authenticated"] is True, answer.body


async def _pod_runs(api: API, name: str) -> None:
    pod: Json = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert (await api.request("POST", "/api/v1/namespaces/default/pods", pod)).status == 201
    await until(_client(api, resources.PODS), name, lambda found: (found.get("status") or {}).get("phase") == "Running")


def _objects() -> dict[str, Json]:
    """Times and durations as far away as the API can say."""
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {"activeDeadlineSeconds": MAX_INT64, "ttlSecondsAfterFinished": MAX_INT32, "template": pod}
    cron = {"schedule": "* * * * *", "startingDeadlineSeconds": MAX_INT64, "jobTemplate": {"spec": job}}
    lease = {"renewTime": f"{LAST}.999999Z", "acquireTime": "0001-01-02T00:00:00.000000Z", "holderIdentity": "a"}
    far = {"leaseDurationSeconds": MAX_INT32, **lease}
    event = {"involvedObject": {"namespace": "default"}, "firstTimestamp": f"{LAST}Z", "lastTimestamp": f"{LAST}Z"}
    return {
        "/apis/batch/v1/namespaces/default/jobs": {"spec": job},
        "/apis/batch/v1/namespaces/default/cronjobs": {"spec": cron},
        "/apis/coordination.k8s.io/v1/namespaces/default/leases": {"spec": far},
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases": {
            "metadata": {"labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}},
            "spec": far,
        },
        "/api/v1/namespaces/default/events": event,
    }


@pytest.mark.parametrize("path", _objects())
async def test_times_at_the_end_of_time_are_taken_and_served(
    api: API, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    body = _objects()[path]
    body["metadata"] = {"name": "far", **body.get("metadata", {})}
    with caplog.at_level(logging.WARNING):
        created = await api.request("POST", path, body)
        assert created.status == 201, created.body
        assert (await api.request("GET", f"{path}/far")).status == 200
        assert (await api.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")).status == 200
        await asyncio.sleep(0)
        assert "OverflowError" not in caplog.text
        assert "Traceback" not in caplog.text


async def test_a_pod_may_be_given_all_the_time_there_is_to_end(api: API) -> None:
    await _pod_runs(api, "patient")
    path = "/api/v1/namespaces/default/pods/patient"
    assert (await api.request("DELETE", path, {"gracePeriodSeconds": MAX_INT64})).status < 500
    assert (await api.request("GET", CONFIG_MAPS)).status == 200
