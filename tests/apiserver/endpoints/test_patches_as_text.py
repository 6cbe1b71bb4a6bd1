"""Patches of texts: numbers as they were written, keys as upstream prints them, and the object before the patch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from whole_server import CONFIG_MAPS, create_config_map, whole_server

from pilothouse.testing import API

MERGE, JSON_PATCH, STRATEGIC = (
    f"application/{kind}" for kind in ("merge-patch+json", "json-patch+json", "strategic-merge-patch+json")
)
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as running:
        yield running


async def create_deployment(server: API) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    assert (await server.request("POST", DEPLOYMENTS, body)).status == 201


@pytest.mark.parametrize("number", ["2.0", "1e3", "9223372036854775808"])
@pytest.mark.parametrize(
    ("media", "patch"),
    [
        (MERGE, '{"spec":{"replicas":NUMBER}}'),
        (JSON_PATCH, '[{"op":"replace","path":"/spec/replicas","value":NUMBER}]'),
    ],
)
async def test_a_number_that_was_not_written_as_an_integer_is_none(
    server: API, media: str, patch: str, number: str
) -> None:
    await create_deployment(server)
    body = orjson.Fragment(patch.replace("NUMBER", number))
    refused = await server.request("PATCH", f"{DEPLOYMENTS}/web", body, media=media)
    wanted = f"json: cannot unmarshal number {number} into Go struct field DeploymentSpec.spec.replicas of type int32"
    assert refused.status == 422
    [cause] = refused.json["details"]["causes"]
    assert (cause["field"], cause["message"].endswith(f": {wanted}")) == ("patch", True), cause["message"]
    assert f'\\"replicas\\":{number},' in cause["message"], "the number is shown as it was sent"


@pytest.mark.parametrize(
    ("media", "query", "message"),
    [
        (MERGE, "", "error decoding patch: invalid character 'ï' looking for beginning of value"),
        (MERGE, "?fieldValidation=Ignore", "Invalid JSON Patch"),
        (JSON_PATCH, "", "error decoding patch: invalid character 'ï' looking for beginning of value"),
        (JSON_PATCH, "?fieldValidation=Ignore", "invalid character 'ï' looking for beginning of value"),
    ],
)
async def test_without_field_validation_the_patch_itself_names_its_fault(
    server: API, media: str, query: str, message: str
) -> None:
    await create_config_map(server, "a")
    refused = await server.request("PATCH", f"{CONFIG_MAPS}/a{query}", b"\xef\xbb\xbf{}", media=media)
    assert (refused.status, refused.json["message"]) == (400, message)


@pytest.mark.parametrize("number", ["1e30", "-1e30", "9223372036854775808"])
async def test_a_number_beyond_int64_becomes_the_smallest_one_by_a_strategic_patch(server: API, number: str) -> None:
    templates = "/api/v1/namespaces/default/podtemplates"
    spec = {"containers": [{"name": "c", "image": "i"}]}
    made = await server.request("POST", templates, {"metadata": {"name": "t"}, "template": {"spec": spec}})
    assert made.status == 201
    patch = orjson.Fragment(f'{{"template":{{"metadata":{{"generation":{number}}}}}}}')
    patched = await server.request("PATCH", f"{templates}/t", patch, media=STRATEGIC)
    assert patched.json["template"]["metadata"]["generation"] == -(2**63)


@pytest.mark.parametrize(
    ("order", "rules", "message"),
    [
        ([], [], "map: map[apiGroups:[apps] resources:[pods] verbs:[get]] does not contain declared merge key: "),
        (
            [{"verbs": ["get"]}],
            [],
            "map: map[apiGroups:[apps] resources:[pods] verbs:[get]] does not contain declared merge key: ",
        ),
        (["x"], [], "expected a map[string]interface {}, but received a string"),
    ],
)
async def test_a_list_of_objects_without_merge_key_has_no_order(
    server: API, order: list[Any], rules: list[Any], message: str
) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
    role = {"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "apiGroups": ["apps"], "resources": ["pods"]}]}
    assert (await server.request("POST", roles, role)).status == 201
    patch = {"$setElementOrder/rules": order, "rules": rules}
    refused = await server.request("PATCH", f"{roles}/r", patch, media=STRATEGIC)
    assert (refused.status, refused.json["message"]) == (500, message)


async def test_a_strategic_patch_takes_a_whole_float_for_an_integer(server: API) -> None:
    await create_deployment(server)
    body = orjson.Fragment('{"spec":{"replicas":2.0}}')
    patched = await server.request("PATCH", f"{DEPLOYMENTS}/web", body, media=STRATEGIC)
    assert (patched.status, patched.json["spec"]["replicas"]) == (200, 2)


async def test_a_test_compares_numbers_as_they_are_written(server: API) -> None:
    await create_deployment(server)
    for number, status in (("1", 200), ("1.0", 422)):
        body = orjson.Fragment('[{"op":"test","path":"/spec/replicas","value":NUMBER}]'.replace("NUMBER", number))
        assert (await server.request("PATCH", f"{DEPLOYMENTS}/web", body, media=JSON_PATCH)).status == status


@pytest.mark.parametrize("media", [MERGE, JSON_PATCH, STRATEGIC])
async def test_what_is_no_patch_is_not_looked_at_where_there_is_no_object(server: API, media: str) -> None:
    refused = await server.request("PATCH", f"{CONFIG_MAPS}/none", orjson.Fragment("{"), media=media)
    assert (refused.status, refused.json["message"]) == (404, 'configmaps "none" not found')
    await create_config_map(server, "none")
    assert (await server.request("PATCH", f"{CONFIG_MAPS}/none", orjson.Fragment("{"), media=media)).status == 400


async def test_a_strategic_patch_of_null_changes_nothing(server: API) -> None:
    created = await create_config_map(server, "a", data={"k": "v"})
    patched = await server.request("PATCH", f"{CONFIG_MAPS}/a", orjson.Fragment("null"), media=STRATEGIC)
    assert (patched.status, patched.json["metadata"]["resourceVersion"]) == (
        200,
        created["metadata"]["resourceVersion"],
    )


@pytest.mark.parametrize(
    ("media", "patch"),
    [
        (MERGE, {"data": {"z": "<", "b": 1}, "immutable": "x"}),
        (JSON_PATCH, [{"op": "add", "path": "/data", "value": {"z": "<", "b": 1}}]),
    ],
)
async def test_a_refused_patch_shows_the_whole_object_as_upstream_prints_it(
    server: API, media: str, patch: Any
) -> None:
    created = await create_config_map(server, "a")
    refused = await server.request("PATCH", f"{CONFIG_MAPS}/a?fieldManager=m", patch, media=media)
    [cause] = refused.json["details"]["causes"]
    data = '{\\"b\\":1,\\"z\\":\\"\\\\u003c\\"}' if media == MERGE else '{\\"z\\":\\"\\\\u003c\\",\\"b\\":1}'
    start = '{\\"apiVersion\\":\\"v1\\",\\"data\\":' + data
    assert f'Invalid value: "{start}' in cause["message"]
    version = created["metadata"]["resourceVersion"]
    assert f'\\"resourceVersion\\":\\"{version}\\",\\"creationTimestamp\\"' in cause["message"]
    assert "cannot unmarshal number into Go struct field ConfigMap.data of type string" in cause["message"]
