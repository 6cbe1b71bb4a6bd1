"""An operator of the official client, on a thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from backups import BACKUP, cron_job_of, in_thread, soon

from pilothouse.testing import BlockingAPI

kubernetes = pytest.importorskip("kubernetes")

BACKUPS = ("example.com", "v1", "default", "backups")


class Operator:
    def __init__(self, kubeconfig: object) -> None:
        api = kubernetes.config.new_client_from_config(str(kubeconfig))
        self.backups, self.batch = kubernetes.client.CustomObjectsApi(api), kubernetes.client.BatchV1Api(api)

    def run(self, stopped: Callable[[], bool]) -> None:
        """What comes is told by a watch, which begins again when the server ends it."""
        while not stopped():
            try:
                backups = (self.backups.list_namespaced_custom_object, *BACKUPS)
                for event in kubernetes.watch.Watch().stream(*backups, timeout_seconds=1):
                    if event["type"] == "ADDED" and not stopped():
                        self.reconcile(event["object"])
            except Exception:
                time.sleep(0.05)

    def reconcile(self, backup: Any) -> None:
        try:
            self.batch.create_namespaced_cron_job("default", cron_job_of(backup))
        except kubernetes.client.ApiException as error:
            if error.status != 409:
                raise

    def cron_jobs(self) -> list[Any]:
        return list(self.batch.list_namespaced_cron_job("default").items)


@pytest.fixture
def operator(kubeconfig: object) -> Iterator[Operator]:
    operator = Operator(kubeconfig)
    with in_thread(operator.run):
        yield operator


def test_a_backup_gets_a_cron_job(operator: Operator) -> None:
    operator.backups.create_namespaced_custom_object(*BACKUPS, BACKUP)
    assert soon(operator.cron_jobs)[0].spec.schedule == "@hourly"


def test_a_server_that_is_in_trouble_is_asked_again(pilothouse: BlockingAPI, operator: Operator) -> None:
    with pilothouse.fault(verbs=["create"], resources=["cronjobs.batch"], times=2, answer=503) as trouble:
        operator.backups.create_namespaced_custom_object(*BACKUPS, BACKUP)
        soon(operator.cron_jobs)
        assert trouble.status()["hits"] == 2


def test_an_hour_later_the_backup_is_made(pilothouse: BlockingAPI, operator: Operator) -> None:
    operator.backups.create_namespaced_custom_object(*BACKUPS, BACKUP)
    soon(operator.cron_jobs)
    pilothouse.clock.step("1h")
    jobs = soon(lambda: operator.batch.list_namespaced_job("default").items)
    assert jobs[0].metadata.name.startswith("photos-")


def test_a_backup_comes_back_with_the_snapshot_that_has_it(pilothouse: BlockingAPI, operator: Operator) -> None:
    operator.backups.create_namespaced_custom_object(*BACKUPS, BACKUP)
    before = pilothouse.snapshot()
    operator.backups.delete_namespaced_custom_object(*BACKUPS, "photos")
    pilothouse.restore(before)
    assert operator.backups.get_namespaced_custom_object(*BACKUPS, "photos")["spec"] == BACKUP["spec"]
