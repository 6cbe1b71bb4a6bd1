"""Finding and deleting jobs through a whole server: their pods stay unless the client says otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from in_process import InProcessServer, in_process_server
from sample_jobs import job

from pilothouse.machinery.objects import Json

JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[InProcessServer]:
    async with in_process_server(tmp_path) as server:
        answer = await server("POST", JOBS, {"apiVersion": "batch/v1", "kind": "Job", **job()})
        assert answer.status == 201, answer.body
        yield server


@pytest.mark.parametrize("path", [f"{JOBS}/j", JOBS])
async def test_a_delete_that_does_not_say_so_warns_that_pods_stay(server: InProcessServer, path: str) -> None:
    answer = await server("DELETE", path)
    assert "child pods are preserved by default when jobs are deleted" in answer.headers["warning"]
    assert (await server("GET", f"{JOBS}/j")).json["metadata"]["finalizers"] == ["orphan"]


@pytest.mark.parametrize("options", [{"propagationPolicy": "Background"}, {"orphanDependents": False}])
async def test_a_delete_that_names_a_policy_is_just_done(server: InProcessServer, options: Json) -> None:
    answer = await server("DELETE", f"{JOBS}/j", {"apiVersion": "v1", "kind": "DeleteOptions", **options})
    assert "warning" not in answer.headers
    assert (await server("GET", f"{JOBS}/j")).status == 404


async def test_jobs_are_found_by_how_many_pods_succeeded(server: InProcessServer) -> None:
    found = await server("GET", f"{JOBS}?fieldSelector=status.successful%3D0")
    assert [item["metadata"]["name"] for item in found.json["items"]] == ["j"]
    assert (await server("GET", f"{JOBS}?fieldSelector=status.successful%3D1")).json["items"] == []
    unknown = await server("GET", f"{JOBS}?fieldSelector=status.failed%3D1")
    assert (unknown.status, unknown.json["message"]) == (400, 'field label "status.failed" not supported for Job')
