"""RawExtensions keep the text that they came as: in the store, in protobuf, and where they are compared."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from whole_server import store_of, whole_server

from pilothouse.apiserver.endpoints.serializers.registry import PROTOBUF
from pilothouse.client import Json
from pilothouse.machinery.protobuf import codec
from pilothouse.machinery.schema.raw_json import RawObject
from pilothouse.testing import API

REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
IMMUTABLE = 'ControllerRevision.apps "a" is invalid: data: Invalid value: {"a":1}: field is immutable'
MERGE, STRATEGIC, YAML = "application/merge-patch+json", "application/strategic-merge-patch+json", "application/yaml"
APPLY = "application/apply-patch+yaml"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as server:
        yield server


def revision(data: str, name: str = '"name": "a"') -> bytes:
    start = f'"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {{{name}}}'
    return f'{{{start}, "revision": 1, "data": {data}}}'.encode()


def device_class(parameters: str) -> bytes:
    config = f'[{{"opaque": {{"driver": "d.example.com", "parameters": {parameters}}}}}]'
    start = '"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "a"}'
    return f'{{{start}, "spec": {{"config": {config}}}}}'.encode()


async def test_json_shows_raw_values_without_space(api: API) -> None:
    answer = await api.request("POST", REVISIONS, revision('{"b" : [1.50, " x "],\n "a":{} }'))
    assert answer.status == 201
    assert b'"data":{"b":[1.50," x "],"a":{}}' in answer.body
    assert b'"data":{"b":[1.50," x "],"a":{}}' in (await api.request("GET", REVISIONS)).body


async def test_the_store_and_protobuf_have_the_text_as_it_came(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as api:
        await api.request("POST", REVISIONS, revision('{"a": 1}'))
        answer = await api.request("GET", f"{REVISIONS}/a", accept=PROTOBUF.media_type)
        assert b'{"a": 1}' in answer.body
    async with store_of(tmp_path) as store:
        page = await store.list("/registry/controllerrevisions/")
        assert b'"data":{"a": 1}' in page.entries[0].value


async def test_text_that_comes_as_protobuf_is_kept_too(api: API) -> None:
    data = RawObject.of({"a": 1}, b'{"a": 1}')
    obj = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a"}, "data": data}
    assert (await api.request("POST", REVISIONS, codec.encode(obj), media=PROTOBUF.media_type)).status == 201
    assert (await api.request("PUT", f"{REVISIONS}/a", revision('{"a":1}'))).status == 422
    assert (await api.request("PUT", f"{REVISIONS}/a", revision('{"a": 1}'))).status == 200


async def test_a_refusal_shows_the_text_without_space_and_with_its_escapes(api: API) -> None:
    await api.request("POST", REVISIONS, revision('{"a": 1}'))
    answer = await api.request("PUT", f"{REVISIONS}/a", revision('{"a": "\\u00e9<", "b": 1.0}'))
    assert 'data: Invalid value: {"a":"\\u00e9\\u003c","b":1.0}: field is immutable' in answer.json["message"]


async def test_a_patch_makes_the_text_compact_and_so_changes_what_may_not_change(api: API) -> None:
    await api.request("POST", REVISIONS, revision('{"a": 1}'))
    answer = await api.request("PATCH", f"{REVISIONS}/a", {"revision": 2}, media=MERGE)
    assert (answer.status, answer.json["message"]) == (422, IMMUTABLE)
    assert (await api.request("PUT", f"{REVISIONS}/a", revision('{"a": 1}'))).status == 200


@pytest.mark.parametrize(
    ("data", "media", "status"),
    [
        ('{"a":"\\u00e9"}', MERGE, 200),
        ('{"a":"\\u003c"}', MERGE, 200),
        ('{"a":"<"}', MERGE, 422),
        ('{"a":"\\u003c"}', STRATEGIC, 200),
        ('{"a":"\\u00e9"}', STRATEGIC, 422),
    ],
)
async def test_a_patch_of_other_fields_writes_the_text_with_the_escapes_of_go(
    api: API, data: str, media: str, status: int
) -> None:
    await api.request("POST", REVISIONS, revision(data))
    assert (await api.request("PATCH", f"{REVISIONS}/a", {"revision": 2}, media=media)).status == status


async def test_a_patch_of_compact_text_changes_nothing(api: API) -> None:
    await api.request("POST", REVISIONS, revision('{"b":1,"a":2}'))
    answer = await api.request("PATCH", f"{REVISIONS}/a", {"revision": 2}, media=MERGE)
    assert (answer.status, answer.json["revision"]) == (200, 2)


async def test_a_strategic_patch_sorts_the_keys(api: API) -> None:
    await api.request("POST", REVISIONS, revision('{"b":1,"a":2}'))
    answer = await api.request("PATCH", f"{REVISIONS}/a", {"revision": 2}, media=STRATEGIC)
    assert answer.status == 422
    assert 'data: Invalid value: {"a":2,"b":1}: field is immutable' in answer.json["message"]


async def test_an_apply_that_changes_nothing_leaves_the_text_alone(api: API) -> None:
    path = f"{REVISIONS}/a?fieldManager=m&force=true"
    assert (await api.request("PATCH", path, revision('{"a": 1}'), media=APPLY)).status == 201
    assert (await api.request("PATCH", path, revision('{"a": 1}'), media=APPLY)).status == 200


async def test_yaml_is_read_with_sorted_keys(api: API) -> None:
    await api.request("POST", REVISIONS, revision("{b: 1, a: 2}").replace(b'"', b""), media=YAML)
    assert (await api.request("PUT", f"{REVISIONS}/a", revision('{"a":2,"b":1}'))).status == 200


async def test_a_generated_name_keeps_the_text(api: API) -> None:
    created = (await api.request("POST", REVISIONS, revision('{"a": 1}', '"generateName": "a-"'))).json
    name = created["metadata"]["name"]
    sent = revision('{"a": 1}', f'"name": "{name}"')
    assert (await api.request("PUT", f"{REVISIONS}/{name}", sent)).status == 200


async def test_an_update_of_the_text_alone_begins_a_generation(api: API) -> None:
    created = (await api.request("POST", CLASSES, device_class('{"a": 1}'))).json
    assert created["metadata"]["generation"] == 1
    for sent, generation in (('{"a": 1}', 1), ('{"a":1}', 2), ('{"a":1}', 2)):
        answer = (await api.request("PUT", f"{CLASSES}/a", device_class(sent))).json
        assert answer["metadata"]["generation"] == generation
    patched = (await api.request("PATCH", f"{CLASSES}/a", {"metadata": {"labels": {"a": "b"}}}, media=MERGE)).json
    assert patched["metadata"]["generation"] == 2


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1beta2"])
async def test_an_update_of_the_text_alone_takes_the_list_of_the_value(version: str) -> None:
    def sent(parameters: str) -> bytes:
        return device_class(parameters).replace(b"resource.k8s.io/v1", f"resource.k8s.io/{version}".encode())

    def owners(obj: Json) -> dict[str, bool]:
        entries = obj["metadata"]["managedFields"]
        return {entry["manager"]: "f:config" in entry["fieldsV1"]["f:spec"] for entry in entries}

    path = CLASSES.replace("v1", version)
    async with whole_server(runtime_config="api/all=true") as api:
        await api.request("POST", f"{path}?fieldManager=one", sent('{"a": 1}'))
        same = await api.request("PUT", f"{path}/a?fieldManager=two", sent('{"a": 1}'))
        assert owners(same.json) == {"one": True}
        compact = await api.request("PUT", f"{path}/a?fieldManager=two", sent('{"a":1}'))
        assert owners(compact.json) == {"two": True}


async def test_an_apply_of_an_equal_value_in_another_text_is_no_conflict(api: API) -> None:
    await api.request("POST", f"{CLASSES}?fieldManager=one", device_class('{"a": 1}'))
    applied = await api.request("PATCH", f"{CLASSES}/a?fieldManager=two", device_class('{"a":1}'), media=APPLY)
    assert (applied.status, applied.json["metadata"]["generation"]) == (200, 1)
    assert [entry["manager"] for entry in applied.json["metadata"]["managedFields"]] == ["two", "one"]


async def test_empty_bytes_that_were_applied_stay_with_their_manager(api: API) -> None:
    webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    client = {"url": "https://example.com", "caBundle": ""}
    hook = {"name": "a.example.com", "clientConfig": client, "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    start = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    body = {**start, "metadata": {"name": "a"}, "webhooks": [hook]}
    applied = await api.request("PATCH", f"{webhooks}/a?fieldManager=one", body, media=APPLY)
    assert applied.status == 201, applied.body
    patched = await api.request("PATCH", f"{webhooks}/a", {"metadata": {"labels": {"a": "b"}}}, media=MERGE)
    before, after = (answer.json["metadata"]["managedFields"][0] for answer in (applied, patched))
    assert before == after
    assert "f:caBundle" in str(after)
