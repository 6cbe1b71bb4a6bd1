"""What is asked for in the wrong place, or in a form that there is not, is refused as upstream refuses it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from custom_resources import DEFINITIONS, SCHEMA, WIDGETS, definition, install, version, widget
from whole_server import whole_server

from pilothouse.testing import API

PROTOBUF = "application/vnd.kubernetes.protobuf"
MERGE = "application/merge-patch+json"
ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
OPEN_MAP = {"type": "object", "additionalProperties": True}
RULES = [{"rule": "self.size < 10", "message": "too large"}]
SPEC = {
    "type": "object",
    "required": ["size"],
    "x-kubernetes-validations": RULES,
    "properties": {
        "size": {"type": "integer", "default": 1, "enum": [1, 2], "minimum": 1},
        "labels": {"type": "object", "additionalProperties": {"type": "string", "default": "<x>"}},
        "open": OPEN_MAP,
        "ports": {"type": "array", "items": {"x-kubernetes-int-or-string": True}},
        "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "default": {"a": [None, 1.5]}},
    },
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as running:
        await install(running, definition(version(schema={"type": "object", "properties": {"spec": SPEC}})))
        yield running


async def test_unserved_path_is_not_found(server: API) -> None:
    for method, path in (
        ("GET", "/apis/nosuch.io"),
        ("GET", "/apis/nosuch.io/v1"),
        ("GET", "/apis/nosuch.io/v1/things"),
        ("DELETE", "/apis/nosuch.io/v1/namespaces/default/things/a"),
        ("GET", "/apis/example.com/v9"),
        ("POST", "/apis/example.com/v1/namespaces/default/gizmos"),
        ("POST", "/apis/example.com/v1/widgets"),
        ("PATCH", "/apis/example.com/v1/widgets/a"),
        ("GET", "/apis/example.com/v1/widgets/a"),
    ):
        answer = await server.request(method, path, None if method == "GET" else {})
        assert (answer.status, answer.body) == (404, b"404 page not found\n"), (method, path)
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_unknown_subresource_is_not_found_with_a_status(
    server: API,
) -> None:
    for path in (f"{WIDGETS}/a/status", f"{WIDGETS}/a/b", f"{WIDGETS}/a/status/x"):
        answer = await server.request("GET", path)
        assert (answer.status, answer.json["message"]) == (404, 'widgets.example.com "a" not found')


async def test_the_verb_proxy_reads_nothing(server: API) -> None:
    for path in ("namespaces/default/widgets", "namespaces/default/widgets/a"):
        answer = await server.request("GET", f"/apis/example.com/v1/proxy/{path}?timeoutSeconds=-1")
        assert answer.status == 405
        assert answer.json["message"] == 'proxy is not supported on resources of kind "widgets.example.com"'


async def test_an_update_must_name_its_object_in_the_path(server: API) -> None:
    put = await server.request("PUT", WIDGETS, widget(spec={"size": 1}))
    patch = await server.request("PATCH", WIDGETS, {}, media=MERGE)
    for answer in (put, patch):
        assert (answer.status, answer.json["message"]) == (400, "name must be provided")
    assert (await server.request("PATCH", WIDGETS, {}, media="text/plain")).status == 415


async def test_a_create_goes_by_the_name_in_the_body(server: API) -> None:
    answer = await server.request("POST", f"{WIDGETS}/other", widget("a", spec={"size": 1}))
    assert (answer.status, answer.json["metadata"]["name"]) == (201, "a")


async def test_custom_resources_speak_json_and_yaml_only(server: API) -> None:
    assert (await server.request("GET", WIDGETS, accept="application/yaml")).body.startswith(
        b"apiVersion: example.com/v1\n"
    )
    yaml = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: from-yaml}\nspec: {size: 2}\n"
    assert (await server.request("POST", WIDGETS, yaml, media="application/yaml")).status == 201
    read = await server.request("GET", WIDGETS, accept=PROTOBUF)
    assert (read.status, read.headers["content-type"]) == (406, PROTOBUF)
    assert f"only the following media types are accepted: {ACCEPTED}".encode() in read.body
    absent = await server.request("GET", f"{WIDGETS}/absent", accept=PROTOBUF)
    assert (absent.status, absent.headers["content-type"]) == (406, PROTOBUF)
    other = await server.request("GET", WIDGETS, accept="text/html")
    assert (other.status, other.json["message"]) == (406, f"only the following media types are accepted: {ACCEPTED}")
    refused = await server.request("POST", WIDGETS, b"k8s\0", media=PROTOBUF)
    assert (refused.status, "cannot be handled as a Widget" in refused.json["message"]) == (400, True)
    unknown = await server.request("POST", WIDGETS, widget(), media="text/plain")
    why = f"the body of the request was in an unknown format - accepted media types include: {ACCEPTED}"
    assert (unknown.status, unknown.json["message"]) == (415, why)


async def test_the_metadata_of_custom_resources_travels_as_protobuf(server: API) -> None:
    form = f"{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    answer = await server.request("GET", WIDGETS, accept=form)
    assert (answer.status, answer.headers["content-type"]) == (200, PROTOBUF)


async def test_a_definition_travels_as_protobuf_and_loses_nothing(server: API) -> None:
    path = f"{DEFINITIONS}/widgets.example.com"
    before = (await server.request("GET", path)).json
    sent = await server.request("GET", path, accept=PROTOBUF)
    assert sent.body.startswith(b"k8s\0")
    written = await server.request("PUT", path, sent.body, media=PROTOBUF)
    assert (written.status, written.json["spec"]) == (200, before["spec"])
    assert written.json["metadata"]["generation"] == 1
    assert written.json["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] == SPEC


async def test_a_definition_is_created_by_protobuf(server: API) -> None:
    from pilothouse.machinery.protobuf.codec import encode

    gadgets = definition(version(schema=SCHEMA), plural="gadgets", kind="Gadget")
    answer = await server.request("POST", DEFINITIONS, encode(gadgets), media=PROTOBUF, accept=PROTOBUF)
    assert (answer.status, answer.body[:4]) == (201, b"k8s\0")
