"""Metadata is checked on creation and on update as upstream does, in its order."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.field import Path, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.conditions import validate_conditions
from pilothouse.machinery.validation.immutable import semantically_equal, validate_immutable_field
from pilothouse.machinery.validation.labels import LabelSelectorRules, has_invalid_value, validate_label_selector
from pilothouse.machinery.validation.names import name_is_dns_subdomain
from pilothouse.machinery.validation.object_meta import validate_object_meta, validate_object_meta_update


def faults(meta: Json, *, namespaced: bool = True, **more: Any) -> list[str]:
    complete = {"name": "a", "namespace": "ns" if namespaced else ""} | meta
    found = validate_object_meta(complete, namespaced=namespaced, name_rule=name_is_dns_subdomain, **more)
    return list(map(str, found))


def test_good_metadata_has_no_faults() -> None:
    meta = {
        "labels": {"example.com/a": "b", "c": ""},
        "annotations": {"Example.com/Any": "thing"},
        "finalizers": ["example.com/hold", "orphan"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}],
        "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsType": "FieldsV1"}],
    }
    assert faults(meta) == []
    assert faults({}, namespaced=False) == []


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"name": ""}, ["metadata.name: Required value: name or generateName is required"]),
        ({"namespace": ""}, ["metadata.namespace: Required value"]),
        ({"namespace": "a.b"}, ['metadata.namespace: Invalid value: "a.b": must not contain dots']),
        ({"generation": -1}, ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"]),
        ({"annotations": {"/k": ""}}, ['metadata.annotations: Invalid value: "/k": prefix part must be non-empty']),
        (
            {"annotations": {"k": "é" * 131072}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
        ),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            [
                'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
                "finalizer orphan and foregroundDeletion cannot be both set"
            ],
        ),
        (
            {"ownerReferences": [{"apiVersion": "", "kind": "", "name": ""}]},
            [
                'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
                'metadata.ownerReferences.kind: Invalid value: "": must not be empty',
                'metadata.ownerReferences.name: Invalid value: "": must not be empty',
                'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
            ],
        ),
        (
            {"ownerReferences": [{"uid": "u1", "name": "e", "kind": "Event", "apiVersion": "v1"}]},
            [
                'metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"e","uid":"u1"}: '
                "/v1, Kind=Event is disallowed from being an owner"
            ],
        ),
        (
            {"ownerReferences": [{"apiVersion": "a/b/c", "kind": "K", "name": "n", "uid": "u"}]},
            ['metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty'],
        ),
        (
            {
                "managedFields": [
                    {"manager": "a\x07é\x01", "operation": "", "fieldsType": "V2", "subresource": "s" * 257}
                ]
            },
            [
                'metadata.managedFields[0].operation: Invalid value: "": must be `Apply` or `Update`',
                'metadata.managedFields[0].fieldsType: Invalid value: "V2": must be `FieldsV1`',
                'metadata.managedFields[0].manager: Invalid value: "a\\aé\\x01": '
                "invalid character U+0007 (at position 1)",
                'metadata.managedFields[0].manager: Invalid value: "a\\aé\\x01": '
                "invalid character U+0001 (at position 4)",
                "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
            ],
        ),
    ],
)
def test_bad_metadata_has_upstreams_faults(meta: Json, expected: list[str]) -> None:
    assert faults(meta) == expected


def test_only_one_owner_may_be_the_controller() -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in ("p", "q")]
    assert faults({"ownerReferences": owners}) == [
        'metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Pod","name":"p","uid":"p",'
        '"controller":true},{"apiVersion":"v1","kind":"Pod","name":"q","uid":"q","controller":true}]: '
        'Only one reference can have Controller set to true. Found "true" in references for Pod/p and Pod/q'
    ]


def test_a_namespace_is_forbidden_on_cluster_scoped_objects() -> None:
    assert faults({"namespace": "x"}, namespaced=False) == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_a_generated_name_and_its_prefix_are_both_checked_unless_the_kind_wants_the_name_only() -> None:
    meta = {"name": "Bad-x", "generateName": "Bad-"}
    assert [fault.partition(":")[0] for fault in faults(meta)] == ["metadata.generateName", "metadata.name"]
    assert [fault.partition(":")[0] for fault in faults(meta, prefix_rule=False)] == ["metadata.name"]
    assert faults({"name": "", "generateName": "x-"}, prefix_rule=False) == [
        'metadata.name: Internal error: generateName was specified ("x-"), but no name was generated',
        "metadata.name: Required value: name or generateName is required",
    ]


def update_faults(new: Json, old: Json) -> list[str]:
    return list(map(str, validate_object_meta_update(new, old)))


def test_an_update_that_changes_nothing_has_no_faults() -> None:
    meta = {"name": "a", "uid": "u", "resourceVersion": "1", "generation": 2, "creationTimestamp": "t"}
    assert update_faults(meta, dict(meta)) == []


def test_an_update_reports_everything_that_may_not_change_in_upstreams_order() -> None:
    old = {"name": "a", "namespace": "n", "uid": "u", "generation": 3, "creationTimestamp": "t"}
    new = {
        "name": "b",
        "namespace": "m",
        "uid": "v",
        "generation": 2,
        "deletionTimestamp": "t",
        "deletionGracePeriodSeconds": 5,
        "labels": {"a": "b@"},
    }
    assert [fault.split(":")[0] for fault in update_faults(new, old)] == [
        "metadata.resourceVersion",
        "metadata.generation",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.creationTimestamp",
        "metadata.deletionTimestamp",
        "metadata.deletionGracePeriodSeconds",
        "metadata.labels",
    ]
    assert 'metadata.resourceVersion: Invalid value: "": must be specified for an update' in update_faults(new, old)
    assert "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable" in update_faults(new, old)


def test_zero_grace_period_differs_from_a_missing_one() -> None:
    old = {"resourceVersion": "1"}
    assert update_faults(old | {"deletionGracePeriodSeconds": 0}, old) == [
        "metadata.deletionGracePeriodSeconds: Invalid value: 0: field is immutable"
    ]
    assert update_faults(old | {"deletionTimestamp": None}, old) == []


def test_an_object_that_is_being_deleted_gets_no_new_finalizers() -> None:
    old = {"resourceVersion": "1", "deletionTimestamp": "t", "finalizers": ["x.io/a"]}
    assert update_faults(old | {"finalizers": []}, old) == []
    assert update_faults(old | {"finalizers": ["x.io/c", "x.io/a", "x.io/b"]}, old) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"x.io/b", "x.io/c"}'
    ]


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (None, [], True),
        ({"x": []}, {}, True),
        ({"x": None}, {}, True),
        ({"x": {}}, {}, False),
        ({"x": [{"y": 1}]}, {"x": [{"y": 1, "z": []}]}, True),
        ([1], [1, 2], False),
        ("a", None, False),
    ],
)
def test_missing_null_and_empty_lists_are_equal(a: Any, b: Any, equal: bool) -> None:
    assert semantically_equal(a, b) is equal
    assert semantically_equal(b, a) is equal


def test_an_immutable_field_may_go_from_empty_to_missing() -> None:
    assert list(validate_immutable_field({}, None, root("data"))) == []
    assert list(map(str, validate_immutable_field("b", "a", root("x")))) == [
        'x: Invalid value: "b": field is immutable'
    ]


SELECTOR: Json = {
    "matchLabels": {"a": "b@"},
    "matchExpressions": [
        {"key": "k", "operator": "In", "values": []},
        {"key": "k", "operator": "Exists", "values": ["v"]},
        {"key": "k", "operator": "Like", "values": ["v@"]},
    ],
}


def test_a_label_selector_is_checked_part_by_part() -> None:
    found = [str(error) for error in validate_label_selector(SELECTOR, Path("spec.selector"))]
    assert [fault.split(": ")[0] for fault in found] == [
        "spec.selector.matchLabels",
        "spec.selector.matchExpressions[0].values",
        "spec.selector.matchExpressions[1].values",
        "spec.selector.matchExpressions[2].operator",
        "spec.selector.matchExpressions[2].values[0]",
    ]
    assert found[1].endswith("Required value: must be specified when `operator` is 'In' or 'NotIn'")
    assert found[3].endswith('Invalid value: "Like": not a valid selector operator')
    assert list(validate_label_selector(None, Path("x"))) == []


def test_a_stored_selector_with_a_bad_value_may_keep_it() -> None:
    assert has_invalid_value(SELECTOR)
    rules = LabelSelectorRules(allow_invalid_values=True, allow_unknown_operator=True)
    assert len(list(validate_label_selector(SELECTOR, Path("x"), rules))) == 3


def test_conditions_need_a_type_a_status_a_reason_and_a_time() -> None:
    good = {"type": "Ready", "status": "True", "reason": "AllGood", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    assert list(validate_conditions([good], root("status"))) == []
    bad = {"type": "Ready", "status": "Maybe", "reason": "not good", "observedGeneration": -1, "message": "m" * 32769}
    found = [str(error).split(": ")[0:2] for error in validate_conditions([good, bad], root("c"))]
    assert found == [
        ["c[1].type", "Duplicate value"],
        ["c[1].status", "Unsupported value"],
        ["c[1].observedGeneration", "Invalid value"],
        ["c[1].lastTransitionTime", "Required value"],
        ["c[1].reason", "Invalid value"],
        ["c[1].message", "Too long"],
    ]
