"""What ObjectType.decode makes of values that fit: Go's omissions, Go's zero values, Go's spellings."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.codec.json import parse_document
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.object_type import ObjectType


def kind(api_version: str, name: str) -> ObjectType:
    found = types.of(GroupVersion.parse(api_version).kind(name))
    assert found is not None
    return found


def decoded(api_version: str, name: str, raw: Any) -> Any:
    return kind(api_version, name).decode(raw).obj


def test_structs_are_always_there_and_zero_values_with_omitempty_never() -> None:
    raw = {"metadata": {"name": ""}, "spec": {"paused": False, "template": {}}}
    assert decoded("apps/v1", "Deployment", raw) == {
        "metadata": {},
        "spec": {
            "selector": None,
            "strategy": {},
            "template": {"metadata": {}, "spec": {"containers": None}},
        },
        "status": {},
    }


def test_pointers_keep_the_zero_they_point_to() -> None:
    spec = decoded("apps/v1", "Deployment", {"spec": {"replicas": 0, "selector": {}}})["spec"]
    assert spec["replicas"] == 0
    assert spec["selector"] == {}


def test_nulls_count_as_absent() -> None:
    raw = {"metadata": None, "data": {"a": None, "b": "x"}, "immutable": None, "binaryData": None}
    assert decoded("v1", "ConfigMap", raw) == {"metadata": {}, "data": {"a": "", "b": "x"}}


def test_null_list_items_become_zero_values() -> None:
    spec = decoded("v1", "Pod", {"spec": {"containers": [None], "imagePullSecrets": [None]}})["spec"]
    assert spec == {"containers": [{"name": "", "resources": {}}], "imagePullSecrets": [{}]}


def test_fields_without_omitempty_print_their_zero_value() -> None:
    event = decoded("events.k8s.io/v1", "Event", {})
    assert event["eventTime"] is None
    assert event["deprecatedSource"] == {}


def test_lists_maps_and_bytes_that_came_empty_stay_so() -> None:
    meta: dict[str, Any] = {"labels": {}, "finalizers": []}
    assert decoded("v1", "ConfigMap", {"metadata": dict(meta), "data": {}}) == {"metadata": meta, "data": {}}
    assert decoded("rbac.authorization.k8s.io/v1", "ClusterRole", {"rules": []})["rules"] == []
    hook = {"name": "a", "clientConfig": {"caBundle": ""}}
    configuration = decoded("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", {"webhooks": [hook]})
    assert configuration["webhooks"][0]["clientConfig"] == {"caBundle": ""}


def test_inlined_structs_lend_their_fields() -> None:
    spec = decoded("v1", "Pod", {"spec": {"volumes": [{"name": "v", "emptyDir": {"medium": ""}}]}})["spec"]
    assert spec["volumes"] == [{"name": "v", "emptyDir": {}}]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("aGk=", "aGk="),
        ("aG\nk=\r\n", "aGk="),
        ("aGl=", "aGk="),
        ([104, 105], "aGk="),
        ("", ""),
        (None, ""),
    ],
)
def test_bytes_are_printed_in_canonical_base64(given: Any, kept: Any) -> None:
    assert decoded("v1", "Secret", {"data": {"k": given}})["data"] == {"k": kept}


def test_times_are_printed_in_utc_and_whole_seconds() -> None:
    meta = decoded("v1", "Pod", {"metadata": {"creationTimestamp": "2024-03-01T01:30:00.9+02:00"}})["metadata"]
    assert meta == {"creationTimestamp": "2024-02-29T23:30:00Z"}


def test_the_zero_time_is_not_printed() -> None:
    assert decoded("v1", "Pod", {"metadata": {"creationTimestamp": "0001-01-01T00:00:00Z"}})["metadata"] == {}


def test_int_or_string_keeps_either() -> None:
    ports = [{"port": 1, "targetPort": "http"}, {"port": 2, "targetPort": 80}, {"port": 3}]
    found = decoded("v1", "Service", {"spec": {"ports": ports}})["spec"]["ports"]
    assert [port["targetPort"] for port in found] == ["http", 80, 0]


@pytest.mark.parametrize(
    ("written", "printed"),
    [('"1000m"', "1"), ('"1024Mi"', "1Gi"), ("2", "2"), ("0.5", "500m"), ("1e3", "1e3"), ('" 1 "', "1"), ("null", "0")],
)
def test_quantities_are_printed_in_canonical_form(written: str, printed: str) -> None:
    document = parse_document(b'{"spec":{"hard":{"cpu":%s}}}' % written.encode())
    assert kind("v1", "ResourceQuota").decode_document(document).obj["spec"] == {"hard": {"cpu": printed}}


def test_whole_floats_print_as_integers() -> None:
    schema = {"maximum": 3.0, "minimum": 0.5, "multipleOf": 2}
    assert schema_of(schema) == {"maximum": 3, "minimum": 0.5, "multipleOf": 2}


def test_raw_json_is_left_alone() -> None:
    assert schema_of({"default": {"a": None, "b": []}, "enum": [None, "", 0]}) == {
        "default": {"a": None, "b": []},
        "enum": [None, "", 0],
    }


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"additionalProperties": True}, {"additionalProperties": True}),
        ({"additionalProperties": {"type": "x"}}, {"additionalProperties": {"type": "x"}}),
        ({"items": [{"type": "x"}]}, {"items": [{"type": "x"}]}),
        ({"items": []}, {"items": []}),
        ({"items": 7}, {}),
        ({"dependencies": {"a": ["b"], "c": {"type": "x"}}}, {"dependencies": {"a": ["b"], "c": {"type": "x"}}}),
    ],
)
def test_unions_in_schemas_take_each_of_their_forms(given: Any, kept: Any) -> None:
    assert schema_of(given) == kept


def test_unknown_fields_inside_a_union_are_dropped_without_a_word() -> None:
    raw = {"spec": {"versions": [{"schema": {"openAPIV3Schema": {"items": {"type": "x", "bogus": 1}}}}]}}
    found = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").decode(raw)
    assert found.strict_errors == ()
    assert found.obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {"items": {"type": "x"}}


def schema_of(schema: Any) -> Any:
    raw = {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}
    obj = decoded("apiextensions.k8s.io/v1", "CustomResourceDefinition", raw)
    return obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_duplicate_members_are_merged_as_go_decodes_the_second_into_the_first() -> None:
    document = parse_document(
        b'{"metadata":{"name":"a","labels":{"x":"1"}},"data":{"k":"1"},"metadata":{"labels":{"y":"2"}},"data":null}'
    )
    found = kind("v1", "ConfigMap").decode_document(document)
    assert found.obj == {"metadata": {"name": "a", "labels": {"x": "1", "y": "2"}}}
    assert found.strict_errors == ('duplicate field "metadata"', 'duplicate field "data"')


def test_the_options_kinds_are_known_in_every_version() -> None:
    assert kind("apps/v1", "DeleteOptions").node is kind("v1", "DeleteOptions").node
    assert decoded("meta.k8s.io/v1", "CreateOptions", {"dryRun": ["All"], "fieldManager": ""}) == {"dryRun": ["All"]}


def test_a_kind_that_is_not_built_in_has_no_type() -> None:
    assert types.of(GroupVersion("example.com", "v1").kind("Crate")) is None
    assert types.definition("io.k8s.api.core.v1.Nothing") is None
