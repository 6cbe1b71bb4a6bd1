"""Custom resources through a whole server: they come, are served, change and go with their definitions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from custom_resources import (
    DEFINITIONS,
    WIDGETS,
    definition,
    events,
    eventually,
    install,
    until_condition,
    until_gone,
    version,
    widget,
)
from whole_server import whole_server

from pilothouse.testing import API

MERGE = "application/merge-patch+json"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as running:
        yield running


async def test_objects_are_served_as_soon_as_the_definition_is_established(server: API) -> None:
    assert (await server.request("GET", WIDGETS)).body == b"404 page not found\n"
    await install(server, definition())
    created = await server.request("POST", WIDGETS, widget(spec={"color": "red"}))
    assert created.status == 201
    assert created.json["spec"] == {"color": "red", "size": 1}
    assert created.json["metadata"]["generation"] == 1
    listed = (await server.request("GET", WIDGETS)).json
    assert (listed["kind"], [item["kind"] for item in listed["items"]]) == ("WidgetList", ["Widget"])


async def test_unknown_fields_are_pruned_or_rejected_with_strict_validation(server: API) -> None:
    await install(server, definition())
    body = widget(spec={"colour": "red"})
    lenient = await server.request("POST", WIDGETS, body)
    assert (lenient.status, lenient.json["spec"]) == (201, {"size": 1})
    assert lenient.headers["warning"] == '299 - "unknown field \\"spec.colour\\""'
    strict = await server.request("POST", f"{WIDGETS}?fieldValidation=Strict", widget("b", spec={"colour": "red"}))
    assert strict.status == 400
    assert 'strict decoding error: unknown field "spec.colour"' in strict.json["message"]


async def test_create_in_a_missing_namespace_is_rejected(server: API) -> None:
    await install(server, definition())
    answer = await server.request("POST", WIDGETS.replace("default", "nowhere"), widget())
    assert (answer.status, answer.json["message"]) == (404, 'namespaces "nowhere" not found')


async def test_an_unknown_version_or_plural_is_nobodys_and_an_unknown_subresource_is_a_status(
    server: API,
) -> None:
    await install(server, definition())
    for path in ("/apis/example.com/v2/widgets", "/apis/example.com/v1/gadgets", "/apis/example.com/v1/widgets/a"):
        assert (await server.request("GET", path)).body == b"404 page not found\n", path
    assert (await server.request("GET", f"{WIDGETS}/a/status")).json["message"] == 'widgets.example.com "a" not found'


async def test_strategic_patches_and_protobuf_are_refused(server: API) -> None:
    await install(server, definition())
    await server.request("POST", WIDGETS, widget())
    patch = await server.request("PATCH", f"{WIDGETS}/a", {}, media="application/strategic-merge-patch+json")
    assert (patch.status, "application/apply-patch+yaml" in patch.json["message"]) == (415, True)
    read = await server.request("GET", f"{WIDGETS}/a", accept="application/vnd.kubernetes.protobuf")
    assert read.status == 406


async def test_an_object_of_another_kind_is_refused_under_its_own_name(server: API) -> None:
    await install(server, definition())
    answer = await server.request("POST", WIDGETS, widget() | {"kind": "Gadget"})
    assert answer.status == 422
    assert answer.json["message"] == 'Gadget.example.com "a" is invalid: kind: Invalid value: "Gadget": must be Widget'


async def test_generation_counts_changes_outside_metadata_and_status(server: API) -> None:
    await install(server, definition(version(subresources={"status": {}})))
    await server.request("POST", WIDGETS, widget(status={"ready": True}))
    labelled = await server.request("PATCH", f"{WIDGETS}/a", {"metadata": {"labels": {"x": "y"}}}, media=MERGE)
    assert (labelled.json["metadata"]["generation"], "status" in labelled.json) == (1, False)
    assert (await server.request("PATCH", f"{WIDGETS}/a/status", {"status": {}}, media=MERGE)).json["status"] == {}
    resized = await server.request("PATCH", f"{WIDGETS}/a", {"spec": {"size": 2}, "status": None}, media=MERGE)
    assert (resized.json["metadata"]["generation"], resized.json["status"]) == (2, {})


async def test_scale_reads_and_writes_the_declared_paths(server: API) -> None:
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    await install(server, definition(version(subresources={"scale": paths, "status": {}})))
    await server.request("POST", WIDGETS, widget(spec={"size": 3}))
    scale = (await server.request("GET", f"{WIDGETS}/a/scale")).json
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 3})
    changed = await server.request("PATCH", f"{WIDGETS}/a/scale", {"spec": {"replicas": 5}}, media=MERGE)
    assert changed.json["spec"] == {"replicas": 5}
    assert (await server.request("GET", f"{WIDGETS}/a")).json["spec"]["size"] == 5
    refused = await server.request("PATCH", f"{WIDGETS}/a/scale", {"spec": {"replicas": -1}}, media=MERGE)
    assert ".spec.size: Invalid value: -1: should be a non-negative integer" in refused.json["message"]


async def test_one_object_is_seen_through_all_served_versions(server: API) -> None:
    old = version("v1beta1", storage=False, deprecated=True)
    await install(server, definition(old, version("v1")))
    await server.request("POST", WIDGETS, widget(spec={"size": 4}))
    seen = await server.request("GET", WIDGETS.replace("/v1/", "/v1beta1/") + "/a")
    assert (seen.json["apiVersion"], seen.json["spec"]) == ("example.com/v1beta1", {"size": 4})
    assert "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget" in seen.headers["warning"]


async def test_fields_of_the_stored_version_do_not_affect_other_versions(server: API) -> None:
    narrow = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    await install(server, definition(version(), version("v2", storage=False, schema=narrow)))
    await server.request("POST", WIDGETS, widget(spec={"color": "red", "size": 2}))
    path = f"{WIDGETS.replace('/v1/', '/v2/')}/a"
    seen = (await server.request("GET", path)).json
    assert seen["spec"] == {"size": 2}
    written = await server.request("PUT", path, seen)
    assert (written.status, written.json["metadata"]["generation"]) == (200, 1), "nothing that v2 knows has changed"
    changed = await server.request("PUT", path, written.json | {"spec": {"size": 3}})
    assert changed.json["metadata"]["generation"] == 2


async def test_a_new_default_shows_in_objects_that_were_stored_before_it(server: API) -> None:
    await install(server, definition())
    await server.request("POST", WIDGETS, widget(spec={}))
    spec = {"type": "object", "properties": {"depth": {"type": "integer", "default": 7}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    watch = events(server, f"{WIDGETS}?watch=true&timeoutSeconds=10")
    assert (await anext(watch))["object"]["spec"] == {"size": 1}
    change = {"spec": {"versions": [version(schema=schema)]}}
    assert (await server.request("PATCH", f"{DEFINITIONS}/widgets.example.com", change, media=MERGE)).status == 200
    # The watch ends when the new schema is in force.
    assert [event async for event in watch] == []
    assert (await server.request("GET", f"{WIDGETS}/a")).json["spec"] == {"depth": 7}


async def test_a_change_of_names_leaves_watches_alone(server: API) -> None:
    await install(server, definition())
    await server.request("POST", WIDGETS, widget("a"))
    watch = events(server, f"{WIDGETS}?watch=true&timeoutSeconds=10")
    assert (await anext(watch))["object"]["metadata"]["name"] == "a"
    change = {"spec": {"names": {"shortNames": ["wd"]}}}
    await server.request("PATCH", f"{DEFINITIONS}/widgets.example.com", change, media=MERGE)
    await server.request("POST", WIDGETS, widget("b"))
    assert (await anext(watch))["object"]["metadata"]["name"] == "b"
    await watch.aclose()


async def test_deleting_a_definition_deletes_its_objects_and_ends_their_watches(server: API) -> None:
    await install(server, definition())
    await server.request("POST", WIDGETS, widget())
    watch = events(server, f"{WIDGETS}?watch=true&timeoutSeconds=10")
    assert (await anext(watch))["type"] == "ADDED"
    deleted = await server.request("DELETE", f"{DEFINITIONS}/widgets.example.com")
    assert deleted.json["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert [event["type"] async for event in watch] == ["DELETED"]
    assert (await eventually(server, 404, "GET", WIDGETS)).body == b"404 page not found\n"


async def test_creates_are_rejected_while_finalizers_block_the_definition(server: API) -> None:
    await install(server, definition())
    await server.request("POST", WIDGETS, widget() | {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    await server.request("DELETE", f"{DEFINITIONS}/widgets.example.com")
    await until_condition(server, "widgets.example.com", "Terminating")
    refused = await eventually(server, 403, "POST", f"{WIDGETS}?dryRun=All", widget("b"))
    assert "create not allowed while custom resource definition is terminating" in refused.json["message"]
    going = until_gone(server, "widgets.example.com")
    await server.request("PATCH", f"{WIDGETS}/a", {"metadata": {"finalizers": None}}, media=MERGE)
    await going


async def test_two_definitions_cannot_have_one_kind_until_the_first_goes(server: API) -> None:
    await install(server, definition())
    await server.request("POST", DEFINITIONS, definition(plural="gadgets"))
    waiting = await until_condition(server, "gadgets.example.com", "NamesAccepted", "False")
    conditions = {each["type"]: each for each in waiting["status"]["conditions"]}
    assert conditions["NamesAccepted"]["message"] == '"WidgetList" is already in use'
    assert conditions["Established"]["reason"] == "NotAccepted"
    await server.request("DELETE", f"{DEFINITIONS}/widgets.example.com")
    await until_condition(server, "gadgets.example.com", "Established")


async def test_discovery_and_openapi_tell_of_custom_resources(server: API) -> None:
    await install(server, definition(version("v1beta1", storage=False), version("v1")))
    group = (await eventually(server, 200, "GET", "/apis/example.com")).json
    assert [each["version"] for each in group["versions"]] == ["v1", "v1beta1"]
    assert "example.com" in [each["name"] for each in (await server.request("GET", "/apis")).json["groups"]]
    resources = (await server.request("GET", "/apis/example.com/v1")).json["resources"]
    assert [each["name"] for each in resources] == ["widgets"]
    documented = (await server.request("GET", "/openapi/v3")).json["paths"]
    assert documented.keys() >= {"apis/example.com/v1", "apis/example.com/v1beta1"}


async def test_writing_what_was_read_moves_an_object_to_the_version_that_is_stored_now(server: API) -> None:
    await install(server, definition(version("v1"), version("v2", storage=False)))
    await server.request("POST", WIDGETS, widget(spec={"size": 4}))
    current = (await server.request("GET", f"{DEFINITIONS}/widgets.example.com")).json
    moved = definition(version("v1", storage=False), version("v2"))["spec"]
    await server.request("PUT", f"{DEFINITIONS}/widgets.example.com", current | {"spec": moved})
    before = (await server.request("GET", f"{WIDGETS}/a")).json
    for _ in range(1000):
        after = (await server.request("PUT", f"{WIDGETS}/a", before)).json
        if after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]:
            break
    assert after["spec"] == before["spec"]
    again = (await server.request("PUT", f"{WIDGETS}/a", after)).json
    assert again["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]


async def test_no_definition_takes_the_place_of_definitions_in_the_openapi_documents(server: API) -> None:
    path = "/openapi/v3/apis/apiextensions.k8s.io/v1"
    before = (await server.request("GET", path)).json["paths"]
    own = {
        "metadata": {
            "name": "customresourcedefinitions.apiextensions.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, test-only"},
        },
        "spec": {
            "group": "apiextensions.k8s.io",
            "scope": "Cluster",
            "names": {"plural": "customresourcedefinitions", "kind": "CustomResourceDefinition"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    await install(server, own)
    await install(server, definition())
    assert (await server.request("GET", path)).json["paths"] == before
