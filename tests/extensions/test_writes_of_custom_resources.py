"""Writes of custom resources: what a status write may change, what is warned of, and where scales must stand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from custom_resources import WIDGETS, definition, install, version, widget
from whole_server import whole_server

from pilothouse.extensions.customresources.scale import ScalePaths, WrongType, nested, set_nested
from pilothouse.testing import API

MERGE = "application/merge-patch+json"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as running:
        yield running


async def test_a_status_write_changes_the_status_and_nothing_else(server: API) -> None:
    status = {"type": "object", "properties": {"n": {"type": "integer"}}}
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    await install(server, definition(version(schema=schema, subresources={"status": {}})))
    created = await server.request("POST", WIDGETS, widget(spec={"size": 1}, status={"n": 7}))
    assert "status" not in created.json
    read = created.json
    sent = read | {"spec": {"size": 5}, "status": {"n": 3}, "metadata": read["metadata"] | {"labels": {"a": "b"}}}
    written = (await server.request("PUT", f"{WIDGETS}/a/status", sent)).json
    assert (written["spec"], written["status"]) == ({"size": 1}, {"n": 3})
    assert "labels" not in written["metadata"]
    assert written["metadata"]["generation"] == 1
    entry = next(each for each in written["metadata"]["managedFields"] if each.get("subresource") == "status")
    assert "f:status" in entry["fieldsV1"]
    refused = await server.request("PUT", f"{WIDGETS}/a/status", written | {"status": {"n": "three"}})
    assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (422, "status.n")
    cleared = await server.request(
        "PUT", f"{WIDGETS}/a/status", {key: written[key] for key in written if key != "status"}
    )
    assert "status" not in cleared.json


async def test_without_the_subresource_the_status_is_written_like_the_rest(server: API) -> None:
    await install(server, definition())
    created = await server.request("POST", WIDGETS, widget(status={}))
    assert created.json["status"] == {}
    assert (await server.request("GET", f"{WIDGETS}/a/status")).status == 404


def warnings(headers: dict[str, str]) -> list[str]:
    return [part for part in headers.get("warning", "").split("299 - ") if part]


@pytest.mark.parametrize(
    ("finalizer", "warned"),
    [
        ("example.com/hold", ""),
        ("orphan", ""),
        ("foregroundDeletion", ""),
        ("hold", "prefer a domain-qualified finalizer name to avoid accidental conflicts"),
        ("hold.example.com", "prefer a domain-qualified finalizer name including a path (/) to avoid"),
    ],
)
async def test_a_finalizer_without_a_domain_is_warned_of_when_it_is_new(
    server: API, finalizer: str, warned: str
) -> None:
    await install(server, definition())
    body = widget()
    body["metadata"]["finalizers"] = [finalizer]
    created = await server.request("POST", WIDGETS, body)
    assert created.status == 201
    found = warnings(created.headers)
    assert warned in found[0] if warned else found == []
    again = await server.request("PATCH", f"{WIDGETS}/a", {"metadata": {"labels": {"a": "b"}}}, media=MERGE)
    assert warnings(again.headers) == [], "it was there before"
    added = {"metadata": {"finalizers": [finalizer, "late"]}}
    late = warnings((await server.request("PATCH", f"{WIDGETS}/a", added, media=MERGE)).headers)
    assert len(late) == 1
    assert "late" in late[0]


async def test_a_dry_run_answers_like_the_write_with_the_defaults_of_the_stored_version(server: API) -> None:
    def schema(**texts: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"spec": {"type": "object", "properties": texts}}}

    text = {"type": "string"}
    stored = schema(a=text | {"default": "stored"}, b=text)
    asked = schema(a=text, b=text | {"default": "asked"})
    await install(server, definition(version(schema=stored), version("v1beta1", storage=False, schema=asked)))
    beta = WIDGETS.replace("/v1/", "/v1beta1/")

    async def specs(method: str, path: str, *body: Any, **media: str) -> list[Any]:
        both = [await server.request(method, f"{path}{run}", *body, **media) for run in ("?dryRun=All", "")]
        return [answer.json["spec"] for answer in both]

    sent = widget(api_version="v1beta1", spec={})
    assert await specs("POST", beta, sent) == [{"a": "stored", "b": "asked"}] * 2
    patch = {"spec": {"a": None, "b": "x"}}
    assert await specs("PATCH", f"{beta}/a", patch, media=MERGE) == [{"a": "stored", "b": "x"}] * 2


PATHS = ScalePaths(".spec.replicas", ".status.replicas", ".status.selector")


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        ({}, []),
        ({"spec": {"replicas": 0}, "status": {"replicas": 2**31 - 1, "selector": "a=b"}}, []),
        ({"spec": {"replicas": -1}}, [".spec.replicas"]),
        ({"spec": {"replicas": 2**31}}, [".spec.replicas"]),
        ({"spec": {"replicas": "3"}}, [".spec.replicas"]),
        ({"spec": "text"}, [".spec.replicas"]),
        ({"spec": None}, []),
        ({"status": {"replicas": -1, "selector": 7}}, [".status.replicas", ".status.selector"]),
    ],
)
def test_scale_replicas_must_fit_int32(obj: dict[str, Any], fields: list[str]) -> None:
    assert [error.field for error in (*PATHS.validate_spec(obj), *PATHS.validate_status(obj))] == fields


def test_missing_parents_of_a_path_are_created() -> None:
    obj: dict[str, Any] = {}
    set_nested(obj, ".spec.workers.replicas", 3)
    assert obj == {"spec": {"workers": {"replicas": 3}}}
    assert nested(obj, ".spec.workers.replicas", int) == 3
    assert nested(obj, ".spec.others.replicas", int) is None
    with pytest.raises(WrongType):
        nested(obj, ".spec.workers", int)
    with pytest.raises(WrongType):
        set_nested({"spec": 3}, ".spec.replicas", 1)
    with pytest.raises(WrongType):
        nested({"n": True}, ".n", int)
