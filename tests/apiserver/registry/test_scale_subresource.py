"""The scale subresource on a whole server: deployments, stateful sets and replication controllers as Scales."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from whole_server import whole_server

from pilothouse.apiserver.registry.scale import Scaling
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.objects import Json
from pilothouse.testing import API

APPS = "/apis/apps/v1/namespaces/default"
MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
TEMPLATE: Json = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
KINDS = {
    f"{APPS}/deployments": ("apps/v1", "Deployment"),
    f"{APPS}/replicasets": ("apps/v1", "ReplicaSet"),
    f"{APPS}/statefulsets": ("apps/v1", "StatefulSet"),
    "/api/v1/namespaces/default/replicationcontrollers": ("v1", "ReplicationController"),
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as server:
        yield server


async def create(server: API, path: str, replicas: int = 2) -> Json:
    version, kind = KINDS[path]
    plain = {"a": "b"}
    selector = plain if kind == "ReplicationController" else {"matchLabels": plain}
    spec = {"replicas": replicas, "selector": selector, "template": TEMPLATE}
    sent = {"apiVersion": version, "kind": kind, "metadata": {"name": "w", "labels": {"x": "y"}}, "spec": spec}
    answer = await server.request("POST", path, sent)
    assert answer.status == 201, answer.body
    made: Json = answer.json
    return made


def scale(replicas: int, **metadata: str) -> Json:
    meta = {"name": "w", **metadata}
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": meta, "spec": {"replicas": replicas}}


@pytest.mark.parametrize("path", KINDS)
async def test_whatever_has_replicas_can_be_read_and_changed_as_a_scale(server: API, path: str) -> None:
    made = await create(server, path)
    shown = (await server.request("GET", f"{path}/w/scale")).json
    assert (shown["apiVersion"], shown["kind"]) == ("autoscaling/v1", "Scale")
    assert shown["metadata"].keys() == {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}
    assert (shown["spec"], shown["status"]) == ({"replicas": 2}, {"replicas": 0, "selector": "a=b"})
    changed = await server.request("PUT", f"{path}/w/scale", scale(5))
    assert (changed.status, changed.json["spec"]) == (200, {"replicas": 5})
    now = (await server.request("GET", f"{path}/w")).json
    assert (now["spec"]["replicas"], now["metadata"]["generation"]) == (5, made["metadata"]["generation"] + 1)
    assert now["metadata"]["labels"] == {"x": "y"}


async def test_a_scale_of_zero_has_no_replicas_in_it(server: API) -> None:
    path = f"{APPS}/deployments"
    await create(server, path)
    answer = await server.request("PATCH", f"{path}/w/scale", {"spec": {"replicas": 0}}, media=MERGE)
    assert (answer.status, answer.json["spec"]) == (200, {})
    assert (await server.request("GET", f"{path}/w")).json["spec"]["replicas"] == 0


async def test_only_replicas_come_back_from_a_scale(server: API) -> None:
    path = f"{APPS}/deployments"
    await create(server, path)
    patch = {"metadata": {"labels": {"x": "z"}}, "status": {"replicas": 9}, "spec": {"replicas": 3}}
    answer = await server.request("PATCH", f"{path}/w/scale", patch, media=MERGE)
    assert (answer.json["spec"], answer.json["status"]["replicas"]) == ({"replicas": 3}, 0)
    assert (await server.request("GET", f"{path}/w")).json["metadata"]["labels"] == {"x": "y"}


async def test_a_scale_that_is_based_on_an_old_version_conflicts(server: API) -> None:
    path = f"{APPS}/deployments"
    old = (await create(server, path))["metadata"]["resourceVersion"]
    current = (await server.request("PUT", f"{path}/w/scale", scale(3))).json["metadata"]["resourceVersion"]
    stale = await server.request("PUT", f"{path}/w/scale", scale(4, resourceVersion=old))
    assert (stale.status, stale.json["details"]["kind"]) == (409, "deployments")
    assert (await server.request("PUT", f"{path}/w/scale", scale(4, resourceVersion=current))).status == 200


async def test_a_scale_of_another_object_is_refused(server: API) -> None:
    path = f"{APPS}/deployments"
    await create(server, path)
    other = await server.request("PATCH", f"{path}/w/scale", {"metadata": {"uid": "other"}}, media=MERGE)
    assert other.status == 409
    assert other.json["message"].startswith('Operation cannot be fulfilled on deployments/scale.apps "w": Precondition')
    missing = await server.request("PUT", f"{path}/none/scale", scale(1) | {"metadata": {"name": "none"}})
    assert (missing.status, missing.json["message"]) == (404, 'deployments.apps "none" not found')


async def test_a_negative_scale_is_refused_as_a_scale(server: API) -> None:
    path = f"{APPS}/deployments"
    await create(server, path)
    answer = await server.request("PUT", f"{path}/w/scale", scale(-1))
    assert answer.status == 422
    assert answer.json["message"] == (
        'Scale.autoscaling "w" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    )


async def test_a_dry_run_scales_nothing(server: API) -> None:
    path = f"{APPS}/deployments"
    await create(server, path)
    answer = await server.request("PUT", f"{path}/w/scale?dryRun=All", scale(9))
    assert (answer.status, answer.json["spec"]) == (200, {"replicas": 9})
    assert (await server.request("GET", f"{path}/w/scale")).json["spec"] == {"replicas": 2}


async def test_the_table_of_a_scale_has_columns_of_its_own(server: API) -> None:
    path = f"{APPS}/deployments"
    await create(server, path)
    table = (await server.request("GET", f"{path}/w/scale", accept=TABLE)).json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"][:3] == ["w", 2, 0]


def test_an_object_with_an_unreadable_selector_has_no_scale() -> None:
    expression = {"key": "a", "operator": "Odd"}
    obj = {"metadata": {"name": "w"}, "spec": {"selector": {"matchExpressions": [expression]}}}
    with pytest.raises(BadRequest, match="is not a valid label selector operator"):
        Scaling().scale_of(obj)
