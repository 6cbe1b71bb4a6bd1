"""Requests that kube-apiserver answers with an error, or not at all, and that succeed here
(docs/reference/deviations.md)."""

from __future__ import annotations

import copy

import pytest
from custom_resources import DEFINITIONS, SCHEMA, WIDGETS, definition, eventually, version, widget
from whole_server import CONFIG_MAPS, whole_server

from pilothouse.client import Json
from pilothouse.testing import API, Answer

SCALE = {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}


async def apply(server: API, path: str, obj: Json, manager: str) -> Answer:
    target = f"{path}?fieldManager={manager}&force=true"
    return await server.request("PATCH", target, obj, content_type="application/apply-patch+yaml")


async def test_a_scale_is_applied_beside_managers_of_several_versions() -> None:
    async with whole_server() as server:
        schema = copy.deepcopy(SCHEMA)
        schema["properties"]["status"]["properties"] = {"size": {"type": "integer"}}
        versions = [version(name, storage=name == "v1", schema=schema, subresources=SCALE) for name in ("v1", "v2")]
        await server.request("POST", DEFINITIONS, definition(*versions))
        await eventually(server, 200, "GET", WIDGETS)
        for name in ("v1", "v2"):
            made = widget(api_version=name, spec={"size": 1})
            assert (await apply(server, f"{WIDGETS.replace('v1', name)}/a", made, name)).status in (200, 201)
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 3}}
        answer = await apply(server, f"{WIDGETS}/a/scale", scale, "scaler")
        assert (answer.status, answer.json["spec"]) == (200, {"replicas": 3})
        assert (await server.request("GET", f"{WIDGETS}/a")).json["spec"]["size"] == 3


@pytest.mark.parametrize("field", ["labels", "annotations"])
async def test_a_repeated_apply_of_an_empty_map_writes_nothing(field: str) -> None:
    async with whole_server() as server:
        await server.request("POST", DEFINITIONS, definition())
        await eventually(server, 200, "GET", WIDGETS)
        made = widget()
        made["metadata"][field] = {}
        first = await apply(server, f"{WIDGETS}/a", made, "loop")
        again = await apply(server, f"{WIDGETS}/a", made, "loop")
        versions = [answer.json["metadata"]["resourceVersion"] for answer in (first, again)]
        assert versions[0] == versions[1]


async def test_a_delete_that_removes_finalizers_meets_its_precondition() -> None:
    async with whole_server() as server:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["orphan"]}}
        created = (await server.request("POST", CONFIG_MAPS, made)).json["metadata"]
        options = {"propagationPolicy": "Background", "preconditions": {"resourceVersion": created["resourceVersion"]}}
        assert (await server.request("DELETE", f"{CONFIG_MAPS}/a", options)).status == 200
        assert (await server.request("GET", f"{CONFIG_MAPS}/a")).status == 404


async def test_an_order_of_elements_that_are_objects_is_answered() -> None:
    async with whole_server() as server:
        await server.request("POST", CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        patch = {"metadata": {"$setElementOrder/finalizers": [{"a": 1}], "finalizers": ["example.com/a"]}}
        kind = "application/strategic-merge-patch+json"
        answer = await server.request("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=kind)
        assert (answer.status, answer.json["status"], answer.json["code"]) == (500, "Failure", 500)
