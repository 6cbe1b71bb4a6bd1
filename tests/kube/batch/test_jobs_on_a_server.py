"""Finding and deleting jobs through a whole server: their pods stay unless the client says otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sample_jobs import job
from whole_server import whole_server

from pilothouse.machinery.objects import Json
from pilothouse.testing import API

JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as server:
        answer = await server.request("POST", JOBS, {"apiVersion": "batch/v1", "kind": "Job", **job()})
        assert answer.status == 201, answer.body
        yield server


@pytest.mark.parametrize("path", [f"{JOBS}/j", JOBS])
async def test_a_delete_that_does_not_say_so_warns_that_pods_stay(server: API, path: str) -> None:
    answer = await server.request("DELETE", path)
    assert "child pods are preserved by default when jobs are deleted" in answer.headers["warning"]
    assert (await server.request("GET", f"{JOBS}/j")).json["metadata"]["finalizers"] == ["orphan"]


@pytest.mark.parametrize("options", [{"propagationPolicy": "Background"}, {"orphanDependents": False}])
async def test_a_delete_that_names_a_policy_is_just_done(server: API, options: Json) -> None:
    answer = await server.request("DELETE", f"{JOBS}/j", {"apiVersion": "v1", "kind": "DeleteOptions", **options})
    assert "warning" not in answer.headers
    assert (await server.request("GET", f"{JOBS}/j")).status == 404


async def test_jobs_are_found_by_how_many_pods_succeeded(server: API) -> None:
    found = await server.request("GET", f"{JOBS}?fieldSelector=status.successful%3D0")
    assert [item["metadata"]["name"] for item in found.json["items"]] == ["j"]
    assert (await server.request("GET", f"{JOBS}?fieldSelector=status.successful%3D1")).json["items"] == []
    unknown = await server.request("GET", f"{JOBS}?fieldSelector=status.failed%3D1")
    assert (unknown.status, unknown.json["message"]) == (400, 'field label "status.failed" not supported for Job')
