"""An operator of kopf, in the process of the test, on a thread with an event loop of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from backups import BACKUP, cron_job_of, soon

from pilothouse.client import BlockingClient
from pilothouse.errors import AlreadyExists
from pilothouse.testing import BlockingAPI

kopf = pytest.importorskip("kopf")


@pytest.fixture
def operator(pilothouse: BlockingAPI, kube_client: BlockingClient) -> Iterator[None]:
    """kopf finds the server by KUBECONFIG. What fails is tried again by kopf."""
    registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
    settings.posting.enabled = False
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)

    def created(body: Any, **_: Any) -> None:
        try:
            kube_client.resource("batch/v1", "cronjobs", namespace="default").create(cron_job_of(body))
        except AlreadyExists:
            return

    kopf.on.create("backups", registry=registry, backoff=0.05)(created)
    stop, ready = threading.Event(), threading.Event()
    flags = {"clusterwide": True, "stop_flag": stop, "ready_flag": ready}
    thread = threading.Thread(target=kopf.run, kwargs={**flags, "registry": registry, "settings": settings})
    thread.start()
    assert ready.wait(20)
    kube_client.resource("example.com/v1", "backups", namespace="default").create(BACKUP)
    yield
    stop.set()
    thread.join()


def listed(client: BlockingClient, api_version: str, plural: str) -> list[Any]:
    return list(client.resource(api_version, plural, namespace="default").items())


@pytest.mark.usefixtures("operator")
def test_a_backup_gets_a_cron_job(kube_client: BlockingClient) -> None:
    assert soon(lambda: listed(kube_client, "batch/v1", "cronjobs"))[0]["spec"]["schedule"] == "@hourly"


def test_a_server_that_is_in_trouble_is_asked_again(
    kube_client: BlockingClient, pilothouse: BlockingAPI, request: pytest.FixtureRequest
) -> None:
    with pilothouse.fault(verbs=["create"], resources=["cronjobs.batch"], times=2, answer=500) as trouble:
        request.getfixturevalue("operator")
        soon(lambda: listed(kube_client, "batch/v1", "cronjobs"))
        assert trouble.status()["hits"] == 2


@pytest.mark.usefixtures("operator")
def test_an_hour_later_the_backup_is_made(kube_client: BlockingClient, pilothouse: BlockingAPI) -> None:
    soon(lambda: listed(kube_client, "batch/v1", "cronjobs"))
    pilothouse.clock.step("1h")
    jobs = soon(lambda: listed(kube_client, "batch/v1", "jobs"))
    assert jobs[0]["metadata"]["name"].startswith("photos-")


@pytest.mark.usefixtures("operator")
def test_a_backup_comes_back_with_the_snapshot_that_has_it(
    kube_client: BlockingClient, pilothouse: BlockingAPI
) -> None:
    soon(lambda: listed(kube_client, "batch/v1", "cronjobs"))
    before = pilothouse.snapshot()
    kube_client.resource("example.com/v1", "backups", namespace="default").delete("photos")
    pilothouse.restore(before)
    assert soon(lambda: listed(kube_client, "example.com/v1", "backups"))[0]["spec"] == BACKUP["spec"]
