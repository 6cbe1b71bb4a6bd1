"""Classes of storage and of volume attributes."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.storage.storageclasses import STORAGE_CLASSES
from pilothouse.kube.storage.volumeattributesclasses import VOLUME_ATTRIBUTES_CLASSES
from pilothouse.machinery.objects import Json


def storage_class(**fields: Any) -> Json:
    return {"metadata": {"name": "c"}, "provisioner": "example.com/p", **fields}


def topology(*expressions: Json) -> Json:
    return {"matchLabelExpressions": list(expressions)}


def test_volumes_of_a_class_are_deleted_and_bound_at_once_by_default() -> None:
    made = decoded(STORAGE_CLASSES, storage_class())
    assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"provisioner": ""}, ["provisioner: Required value"]),
        (
            {"reclaimPolicy": "Recycle"},
            ['reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"'],
        ),
        (
            {"volumeBindingMode": "Later"},
            ['volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"'],
        ),
        ({"parameters": {"": "x"}}, ['parameters: Invalid value: "": field can not be empty.']),
        ({"parameters": {str(n): "" for n in range(513)}}, ["parameters: Too long: may not be more than 512 bytes"]),
        ({"parameters": {"a": "x" * 262144}}, ["parameters: Too long: may not be more than 262144 bytes"]),
        (
            {"allowedTopologies": [topology({"key": "z", "values": ["a", "a"]}, {"key": "z", "values": []})]},
            [
                'allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
                "allowedTopologies[0].matchLabelExpressions[1].values: Required value",
                'allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "z"',
            ],
        ),
        (
            {"allowedTopologies": [topology({"key": "z", "values": ["a"]}), topology({"key": "z", "values": ["a"]})]},
            ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
        ),
    ],
)
def test_what_is_wrong_with_a_class_is_named(fields: Json, refused: list[str]) -> None:
    assert refusals(STORAGE_CLASSES, storage_class(**fields)) == refused


@pytest.mark.parametrize("field", ["provisioner", "reclaimPolicy", "volumeBindingMode"])
def test_what_decides_how_volumes_are_made_stays(field: str) -> None:
    other = {"provisioner": "example.com/q", "reclaimPolicy": "Retain", "volumeBindingMode": "WaitForFirstConsumer"}
    found = update_refusals(STORAGE_CLASSES, storage_class(**{field: other[field]}), storage_class())
    assert found == [f'{field}: Invalid value: "{other[field]}": field is immutable']


def test_parameters_stay() -> None:
    found = update_refusals(STORAGE_CLASSES, storage_class(parameters={"b": "1", "a": "2"}), storage_class())
    assert found == ['parameters: Invalid value: {"a":"2","b":"1"}: field is immutable']


def test_expansion_may_be_allowed_later() -> None:
    assert update_refusals(STORAGE_CLASSES, storage_class(allowVolumeExpansion=True), storage_class()) == []


def test_the_default_class_is_marked_in_the_table() -> None:
    default = storage_class()
    default["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    name = STORAGE_CLASSES.columns[0].cell
    assert (name(default), name(storage_class())) == ("c (default)", "c")


def test_old_labels_in_topologies_are_warned_of() -> None:
    made = decoded(STORAGE_CLASSES, storage_class(allowedTopologies=[topology({"key": "beta.kubernetes.io/os"})]))
    assert list(STORAGE_CLASSES.strategy.warnings_on_create(made)) == [
        'allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]


def test_attribute_classes_have_parameters_that_never_change() -> None:
    base: Json = {"metadata": {"name": "a"}, "driverName": "d", "parameters": {"iops": "1"}}
    assert refusals(VOLUME_ATTRIBUTES_CLASSES, base) == []
    assert refusals(VOLUME_ATTRIBUTES_CLASSES, base | {"parameters": {}}) == [
        "parameters: Required value: must contain at least one key/value pair"
    ]
    changed = base | {"driverName": "e", "parameters": {"iops": "2"}}
    assert update_refusals(VOLUME_ATTRIBUTES_CLASSES, changed, base) == [
        "driverName: Forbidden: updates to driverName are forbidden.",
        "parameters: Forbidden: updates to parameters are forbidden.",
    ]
