"""Server-side apply of objects whose managers wrote through other versions."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from fuzz_objects import Generator
from whole_server import whole_server

from pilothouse.apiserver.endpoints import install
from pilothouse.apiserver.endpoints.fieldmanager.structured_merge import StructuredMerge, VersionConverter
from pilothouse.client import Json
from pilothouse.machinery.apply.atoms import Unkeyed
from pilothouse.machinery.apply.typed import Typed
from pilothouse.machinery.apply.validate import TypedError, check
from pilothouse.machinery.names import GroupVersion
from pilothouse.testing import API, Answer

APPLY = "application/apply-patch+yaml"
EVERYTHING: dict[str, Any] = {"runtime_config": "api/all=true"}
OBJECTS_PER_VERSION = 40


async def write(api: API, version: str, obj: Json, *, manager: str, force: bool = True) -> Answer:
    body = {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceSlice", "metadata": {"name": "s"}, **obj}
    path = f"/apis/resource.k8s.io/{version}/resourceslices"
    if not manager.startswith("applier"):
        return await api.request("POST", f"{path}?fieldManager={manager}", body)
    return await api.request("PATCH", f"{path}/s?fieldManager={manager}&force={force}", body, media=APPLY)


def slice_with(*counters: Json, **fields: Any) -> Json:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {"spec": {"driver": "d.example.com", "nodeName": "n", "pool": pool, "sharedCounters": counters, **fields}}


def counter(name: str, value: Any) -> Json:
    return {"name": name, "counters": {"x": {"value": value}}}


@pytest.mark.parametrize(
    ("value", "status", "message"),
    [
        (1e30, 200, ""),
        ("many", 500, "to convert unstructured object to resource.k8s.io/v1beta2, Kind=ResourceSlice: quantities must"),
        ({}, 500, "failed to create typed patch object"),
    ],
)
async def test_unusual_quantity_is_converted_to_the_versions_of_other_managers_or_refused(
    value: Any, status: int, message: str
) -> None:
    async with whole_server(**EVERYTHING) as api:
        made = await write(api, "v1beta1", slice_with(counter("a", "1")), manager="creator")
        assert made.status == 201, made.body
        first = await write(api, "v1", slice_with(counter("a", "2")), manager="applier-1")
        assert first.status == 200, first.body
        applied = await write(api, "v1beta2", slice_with(counter("a", "2"), counter("b", value)), manager="applier-2")
    assert applied.status == status, applied.body
    assert message in applied.json.get("message", "")
    assert status != 200 or applied.json["spec"]["sharedCounters"][1] == counter("b", "1e+30")


async def test_empty_list_conflicts_with_the_manager_that_filled_the_list_through_another_version() -> None:
    async with whole_server(**EVERYTHING) as api:
        filled = await write(api, "v1", slice_with(counter("a", "1")), manager="applier-1")
        assert filled.status == 201, filled.body
        refused = await write(api, "v1beta2", slice_with(), manager="applier-2", force=False)
        assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (409, ".spec.sharedCounters")
        emptied = await write(api, "v1beta2", slice_with(), manager="applier-2")
        assert (emptied.status, "sharedCounters" in emptied.json["spec"]) == (200, False)


async def test_updates_through_several_versions_have_an_entry_for_each_version() -> None:
    def sent(version: str, parameters: Json, expression: str) -> Json:
        config = [{"opaque": {"driver": "d.example.com", "parameters": parameters}}]
        spec = {"selectors": [{"cel": {"expression": expression}}], "config": config}
        return {
            "apiVersion": f"resource.k8s.io/{version}",
            "kind": "DeviceClass",
            "metadata": {"name": "c"},
            "spec": spec,
        }

    def entries(answer: Answer) -> dict[str, list[str]]:
        found = answer.json["metadata"]["managedFields"]
        return {entry["apiVersion"].partition("/")[2]: list(entry["fieldsV1"]["f:spec"]) for entry in found}

    async with whole_server(**EVERYTHING) as api:
        classes = "/apis/resource.k8s.io/{}/deviceclasses"
        made = await api.request(
            "POST", f"{classes.format('v1beta1')}?fieldManager=m", sent("v1beta1", {"a": 1}, "true")
        )
        assert entries(made) == {"v1beta1": ["f:config", "f:selectors"]}
        for version, body, expected in (
            ("v1beta2", ({"a": 2}, "true"), {"v1beta1": ["f:selectors"], "v1beta2": ["f:config"]}),
            ("v1", ({"a": 2}, "false"), {"v1": ["f:selectors"], "v1beta2": ["f:config"]}),
            ("v1beta1", ({"a": 3}, "true"), {"v1beta1": ["f:config", "f:selectors"]}),
        ):
            put = await api.request("PUT", f"{classes.format(version)}/c?fieldManager=m", sent(version, *body))
            assert entries(put) == expected


async def test_conversion_for_field_managers_never_fails_but_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    merges: list[StructuredMerge] = []

    def recorded(*args: Any) -> StructuredMerge:
        merges.append(StructuredMerge(*args))
        return merges[-1]

    monkeypatch.setattr(install, "StructuredMerge", recorded)
    async with whole_server(**EVERYTHING):
        pass
    several = [merge for merge in merges if len(merge.forms) > 1]
    assert {"HorizontalPodAutoscaler", "ResourceClaim", "ServiceCIDR"} <= {merge.kind.kind for merge in several}
    make = Generator(Random(31))
    for merge in several:
        for _ in range(OBJECTS_PER_VERSION):
            _convert_everywhere(merge, make)


def _convert_everywhere(merge: StructuredMerge, make: Generator) -> None:
    converter = VersionConverter(merge.forms)
    for version, form in merge.forms.items():
        kind = GroupVersion.parse(version).kind(merge.kind.kind)
        obj = make.named(make.mutated(make.object(kind, "a")), kind, "a")
        try:
            check(form.decoder.atom, obj)
        except TypedError:
            continue
        for other in merge.forms:
            try:
                converted = converter.convert(Typed(form.decoder.atom, obj, version), other)
            except (TypedError, Unkeyed):
                continue
            assert converted is not None
            assert converted.api_version == converted.value["apiVersion"] == other
