"""A field that only the overlay knows of is a field like all others to every client of a server with that build."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from built_package import built_with
from kubectl import BINARY, MISSING, Kubectl

from pilothouse.client import GroupVersionKind
from pilothouse.machinery.protobuf import codec
from pilothouse.machinery.protobuf.envelope import envelope
from pilothouse.testing import BlockingAPI, Server

OVERLAY = Path(__file__).parent / "added_field.toml"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
NOTE = "io.k8s.api.core.v1.ConfigMapNote"
PROTOBUF, APPLY = "application/vnd.kubernetes.protobuf", "application/apply-patch+yaml"
NOTES_ON_THE_WIRE = b"\x2a\x0e\x0a\x06colour\x12\x02no\x18\x00"
"""Field 5, a message: field 1 "colour", field 2 "no", field 3 zero."""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingAPI]:
    server = Server(process=True)
    with built_with(OVERLAY, tmp_path_factory.mktemp("built")):
        api = server.start()
    yield api
    server.stop()


def config_map(name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def create(api: BlockingAPI, name: str, *notes: dict[str, Any]) -> Any:
    answer = api.request("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", config_map(name, notes=notes))
    assert answer.status == 201, answer.json
    return answer.json


def get(api: BlockingAPI, name: str) -> Any:
    return api.request("GET", f"{CONFIG_MAPS}/{name}").json


def test_it_survives_json(api: BlockingAPI) -> None:
    notes: list[dict[str, Any]] = [{"key": "colour", "text": "no", "weight": 0}, {"key": "size"}]
    assert create(api, "json", *notes)["notes"] == notes
    assert get(api, "json")["notes"] == notes


def test_what_does_not_fit_it_is_refused(api: BlockingAPI) -> None:
    answer = api.request("POST", CONFIG_MAPS, config_map("refused", notes=[{"key": "a", "weight": "heavy"}]))
    assert answer.status == 400
    assert "ConfigMapNote.notes.weight of type int32" in answer.json["message"]
    strict = f"{CONFIG_MAPS}?fieldValidation=Strict"
    unknown = api.request("POST", strict, config_map("refused", notes=[{"key": "a", "size": 1}]))
    assert 'unknown field "notes[0].size"' in unknown.json["message"]


def test_it_survives_protobuf(api: BlockingAPI) -> None:
    message = codec.encode_raw(config_map("protobuf"), CONFIG_MAP) + NOTES_ON_THE_WIRE
    created = api.request("POST", CONFIG_MAPS, envelope(CONFIG_MAP, message), media=PROTOBUF, accept=PROTOBUF)
    assert created.status == 201
    assert NOTES_ON_THE_WIRE in created.body
    assert get(api, "protobuf")["notes"] == [{"key": "colour", "text": "no", "weight": 0}]
    assert NOTES_ON_THE_WIRE in api.request("GET", f"{CONFIG_MAPS}/protobuf", accept=PROTOBUF).body


def test_it_is_in_both_openapi_documents(api: BlockingAPI) -> None:
    definitions = api.request("GET", "/openapi/v2").json["definitions"]
    notes = definitions["io.k8s.api.core.v1.ConfigMap"]["properties"]["notes"]
    assert notes["items"] == {"$ref": f"#/definitions/{NOTE}"}
    assert (notes["x-kubernetes-list-type"], notes["x-kubernetes-list-map-keys"]) == ("map", ["key"])
    schemas = api.request("GET", "/openapi/v3/api/v1").json["components"]["schemas"]
    assert schemas["io.k8s.api.core.v1.ConfigMap"]["properties"]["notes"]["items"] == {
        "allOf": [{"$ref": f"#/components/schemas/{NOTE}"}],
        "default": {},
    }
    assert schemas[NOTE]["required"] == definitions[NOTE]["required"] == ["key"]
    assert schemas[NOTE]["properties"]["weight"]["default"] == 10
    assert "default" not in definitions[NOTE]["properties"]["weight"]


def test_appliers_own_its_items_by_their_keys(api: BlockingAPI) -> None:
    for manager, note in {"ann": {"key": "colour", "text": "no"}, "bob": {"key": "size", "weight": 3}}.items():
        target = f"{CONFIG_MAPS}/applied?fieldManager={manager}"
        applied = api.request("PATCH", target, config_map("applied", notes=[note]), media=APPLY)
        assert applied.status in (200, 201), applied.json
    assert applied.json["notes"] == [{"key": "colour", "text": "no"}, {"key": "size", "weight": 3}]
    owned = {entry["manager"]: entry["fieldsV1"]["f:notes"] for entry in applied.json["metadata"]["managedFields"]}
    assert owned == {
        "ann": {'k:{"key":"colour"}': {".": {}, "f:key": {}, "f:text": {}}},
        "bob": {'k:{"key":"size"}': {".": {}, "f:key": {}, "f:weight": {}}},
    }
    given_up = api.request("PATCH", target, config_map("applied"), media=APPLY)
    assert given_up.json["notes"] == [{"key": "colour", "text": "no"}]


def test_a_strategic_merge_patch_finds_its_items_by_their_key(api: BlockingAPI) -> None:
    create(api, "patched", {"key": "colour"}, {"key": "size"})
    patch = {"notes": [{"key": "size", "text": "large"}]}
    media = "application/strategic-merge-patch+json"
    patched = api.request("PATCH", f"{CONFIG_MAPS}/patched", patch, media=media).json
    assert sorted(patched["notes"], key=str) == [{"key": "colour"}, {"key": "size", "text": "large"}]


def test_kubectl_explains_it(api: BlockingAPI, tmp_path: Path) -> None:
    if BINARY is None:
        pytest.skip(MISSING)
    kubectl = Kubectl(api.kubeconfig, tmp_path)
    shown = kubectl("explain", "configmaps.notes")
    assert "FIELD: notes <[]ConfigMapNote>" in shown
    assert "Notes are remarks about the keys of data" in shown
    assert re.search(r"^  key\t<string> -required-\n    Key is the key of data", shown, re.MULTILINE)
