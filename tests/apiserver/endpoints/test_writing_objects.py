"""POST, PUT, PATCH and DELETE through the whole server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from whole_server import CONFIG_MAPS, create_config_map, store_of, whole_server

from pilothouse.testing import API


async def test_a_create_fills_in_what_belongs_to_the_server(api: API) -> None:
    made = await create_config_map(
        api, "a", data={"k": "v"}, metadata={"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"}
    )
    meta = made["metadata"]
    assert meta["uid"] != "mine"
    assert not meta["creationTimestamp"].startswith("2001")
    assert meta["namespace"] == "default"
    assert int(meta["resourceVersion"]) > 0


async def test_what_was_created_is_read_back_byte_for_byte(api: API) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"é": "\u2028"}}
    body["data"] = {"k": 'é\u2028"'}
    created = await api.request("POST", CONFIG_MAPS, body)
    assert (await api.request("GET", f"{CONFIG_MAPS}/a")).body == created.body


async def test_a_second_create_of_a_name_is_refused(api: API) -> None:
    await create_config_map(api, "a")
    answer = await api.request(
        "POST", CONFIG_MAPS, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}
    )
    assert (answer.status, answer.json["reason"]) == (409, "AlreadyExists")


async def test_generated_names_are_unique_and_keep_their_prefix(api: API) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "gen-"}}
    names = {(await api.request("POST", CONFIG_MAPS, body)).json["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("gen-") and len(name) == 9 for name in names)


async def test_an_object_for_another_namespace_is_refused(api: API) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "elsewhere"}}
    assert (await api.request("POST", CONFIG_MAPS, body)).status == 400


async def test_a_create_in_a_missing_namespace_is_not_found(api: API) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    answer = await api.request("POST", "/api/v1/namespaces/absent/configmaps", body)
    assert answer.json["message"] == 'namespaces "absent" not found'


async def test_a_replacement_at_a_stale_version_is_a_conflict(api: API) -> None:
    made = await create_config_map(api, "a")
    await api.request("PUT", f"{CONFIG_MAPS}/a", made | {"data": {"k": "1"}})
    answer = await api.request("PUT", f"{CONFIG_MAPS}/a", made | {"data": {"k": "2"}})
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")


async def test_a_replacement_that_changes_nothing_keeps_the_version(api: API) -> None:
    made = await create_config_map(api, "a", data={"k": "v"})
    assert (await api.request("PUT", f"{CONFIG_MAPS}/a", made)).json == made


async def test_concurrent_patches_of_one_object_all_take_effect(api: API) -> None:
    await create_config_map(api, "a", data={})
    patches = [
        api.request("PATCH", f"{CONFIG_MAPS}/a", {"data": {f"k{i}": "v"}}, media="application/merge-patch+json")
        for i in range(25)
    ]
    assert {answer.status for answer in await asyncio.gather(*patches)} == {200}
    assert len((await api.request("GET", f"{CONFIG_MAPS}/a")).json["data"]) == 25


@pytest.mark.parametrize(
    ("media", "patch"),
    [
        ("application/merge-patch+json", {"data": {"a": None, "b": "2"}}),
        ("application/strategic-merge-patch+json", {"data": {"a": None, "b": "2"}}),
        (
            "application/json-patch+json",
            [{"op": "remove", "path": "/data/a"}, {"op": "add", "path": "/data/b", "value": "2"}],
        ),
    ],
)
async def test_each_kind_of_patch_adds_and_removes(api: API, media: str, patch: object) -> None:
    await create_config_map(api, "a", data={"a": "1"})
    answer = await api.request("PATCH", f"{CONFIG_MAPS}/a", patch, media=media)
    assert answer.json["data"] == {"b": "2"}


async def test_a_patch_of_an_unknown_type_is_refused(api: API) -> None:
    await create_config_map(api, "a")
    answer = await api.request("PATCH", f"{CONFIG_MAPS}/a", {}, media="application/json")
    assert (answer.status, answer.json["message"]) == (415, "415: Unsupported Media Type")


async def test_unknown_fields_are_refused_warned_about_or_ignored(api: API) -> None:
    def body(name: str) -> dict[str, object]:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "extra": 1}

    strict = await api.request("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", body("a"))
    assert (strict.status, 'unknown field "extra"' in strict.json["message"]) == (400, True)
    warned = await api.request("POST", CONFIG_MAPS, body("b"))
    assert warned.headers["warning"] == '299 - "unknown field \\"extra\\""'
    assert "extra" not in warned.json
    ignored = await api.request("POST", f"{CONFIG_MAPS}?fieldValidation=Ignore", body("c"))
    assert "warning" not in ignored.headers


async def test_a_dry_run_answers_as_if_and_writes_nothing(api: API) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    dry = await api.request("POST", f"{CONFIG_MAPS}?dryRun=All", body)
    assert dry.status == 201
    assert "resourceVersion" not in dry.json["metadata"]
    assert (await api.request("GET", f"{CONFIG_MAPS}/a")).status == 404
    made = await create_config_map(api, "a", data={"k": "1"})
    await api.request(
        "PATCH", f"{CONFIG_MAPS}/a?dryRun=All", {"data": {"k": "2"}}, media="application/merge-patch+json"
    )
    await api.request("DELETE", f"{CONFIG_MAPS}/a?dryRun=All")
    assert (await api.request("GET", f"{CONFIG_MAPS}/a")).json == made


async def test_an_object_with_finalizers_is_marked_and_goes_with_the_last_of_them(api: API) -> None:
    await create_config_map(api, "a", metadata={"finalizers": ["example.com/hold"]})
    marked = (await api.request("DELETE", f"{CONFIG_MAPS}/a")).json
    assert marked["metadata"]["deletionTimestamp"]
    assert (await api.request("GET", f"{CONFIG_MAPS}/a")).status == 200
    patch = {"metadata": {"finalizers": None}}
    await api.request("PATCH", f"{CONFIG_MAPS}/a", patch, media="application/merge-patch+json")
    assert (await api.request("GET", f"{CONFIG_MAPS}/a")).status == 404


async def test_foreground_deletion_leaves_the_object_to_the_garbage_collector(api: API) -> None:
    await create_config_map(api, "a")
    marked = (await api.request("DELETE", f"{CONFIG_MAPS}/a?propagationPolicy=Foreground")).json
    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_preconditions_protect_an_object_that_was_recreated(api: API) -> None:
    made = await create_config_map(api, "a")
    wrong = await api.request("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": {"uid": "other"}})
    assert wrong.status == 409
    right = await api.request("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": {"uid": made["metadata"]["uid"]}})
    assert right.json["status"] == "Success"


async def test_deleting_a_collection_deletes_what_the_selector_chooses(api: API) -> None:
    for name, app in (("a", "x"), ("b", "y"), ("c", "x")):
        await create_config_map(api, name, metadata={"labels": {"app": app}})
    deleted = await api.request("DELETE", f"{CONFIG_MAPS}?labelSelector=app%3Dx")
    assert [item["metadata"]["name"] for item in deleted.json["items"]] == ["a", "c"]
    left = (await api.request("GET", CONFIG_MAPS)).json["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]


async def test_a_collection_at_a_compacted_revision_is_not_deleted(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as api:
        await create_config_map(api, "a")
    async with store_of(tmp_path) as store:
        await store.compact(await store.current_revision())
    async with whole_server(tmp_path) as api:
        answer = await api.request("DELETE", f"{CONFIG_MAPS}?resourceVersion=1")
        assert (answer.status, answer.json["reason"]) == (410, "Expired")
        assert (await api.request("GET", f"{CONFIG_MAPS}/a")).status == 200


async def test_an_empty_namespace_in_the_path_is_a_missing_namespace(api: API) -> None:
    await create_config_map(api, "a")
    nowhere = "/api/v1/namespaces//configmaps"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}
    created = await api.request("POST", nowhere, body)
    assert created.json["message"] == 'ConfigMap "b" is invalid: metadata.namespace: Required value'
    read = await api.request("GET", f"{nowhere}/a")
    assert (read.status, read.json["message"]) == (400, "Namespace parameter required.")
    assert (await api.request("DELETE", nowhere)).json["message"] == "Namespace parameter required."
    assert (await api.request("GET", nowhere)).json["items"]
    assert (await api.request("GET", f"{CONFIG_MAPS}/a")).status == 200


async def test_a_namespace_ends_only_through_its_finalizers(api: API) -> None:
    await api.request(
        "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "w"}}
    )
    ended = (await api.request("DELETE", "/api/v1/namespaces/w")).json
    assert ended["status"]["phase"] == "Terminating"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "w"}, "spec": {}}
    assert (await api.request("PUT", "/api/v1/namespaces/w/finalize", body)).status == 200
    assert (await api.request("GET", "/api/v1/namespaces/w")).status == 404


async def test_status_writes_change_the_status_alone(api: API) -> None:
    path = "/api/v1/namespaces/default"
    patch = {"spec": {"finalizers": ["example.com/x"]}, "status": {"conditions": [{"type": "A", "status": "True"}]}}
    await api.request("PATCH", f"{path}/status", patch, media="application/merge-patch+json")
    found = (await api.request("GET", path)).json
    assert found["spec"] == {"finalizers": ["kubernetes"]}
    assert found["status"]["conditions"][0]["type"] == "A"


async def test_repeated_bodies_make_equal_objects_of_their_own(api: API) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "r-"}, "data": {"k": "v"}}
    made = [(await api.request("POST", CONFIG_MAPS, body)).json for _ in range(4)]
    assert len({each["metadata"]["uid"] for each in made}) == 4
    for each in made:
        for field in ("name", "uid", "resourceVersion", "creationTimestamp"):
            assert each["metadata"].pop(field)
        assert each["metadata"]["managedFields"][0].pop("time")
    assert made[1:] == made[:-1]


async def test_a_repeated_body_is_decoded_by_the_options_of_its_request(api: API) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "r-"}, "dat": {"k": "v"}}
    for _ in range(3):
        assert (await api.request("POST", f"{CONFIG_MAPS}?fieldValidation=Ignore", body)).status == 201
    assert (await api.request("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", body)).status == 400
    body["data"] = body.pop("dat")
    managers = set()
    for manager in ("one", "two", "one", "two", "one", "two"):
        made = (await api.request("POST", f"{CONFIG_MAPS}?fieldManager={manager}", body)).json
        managers.add((manager, made["metadata"]["managedFields"][0]["manager"]))
    assert managers == {("one", "one"), ("two", "two")}
