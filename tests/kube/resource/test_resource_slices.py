"""ResourceSlices: the devices of a driver."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pilothouse.kube.resource.resource_slices import RESOURCE_SLICES, ResourceSliceStrategy
from pilothouse.machinery.objects import Json

STRATEGY = ResourceSliceStrategy()
MOST = str(2**63 - 1)
NODES = "`nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"


def resource_slice(**spec: Any) -> Json:
    whole = {
        "driver": "x.io",
        "pool": {"name": "p", "resourceSliceCount": 1},
        "nodeName": "n",
        **spec,
    }
    metadata = {"name": "s", "resourceVersion": "1", "generation": 1}
    return {"metadata": metadata, "spec": {k: deepcopy(v) for k, v in whole.items() if v is not None}}


def with_device(**device: Any) -> Json:
    return resource_slice(devices=[{"name": "d", **device}])


def complaints(obj: Json) -> list[str]:
    return [str(error) for error in STRATEGY.validate(obj)]


def capacity(value: str, **policy: Any) -> Json:
    return with_device(allowMultipleAllocations=True, capacity={"m": {"value": value, "requestPolicy": policy}})


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (resource_slice(), []),
        (
            resource_slice(driver="", pool={"name": "a//b", "generation": -1}),
            [
                "spec.driver: Required value",
                'spec.pool.name: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case '
                "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
                "'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
                "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
            ],
        ),
        (resource_slice(nodeName=None), [f"spec: Required value: exactly one of {NODES} is required"]),
        (
            resource_slice(allNodes=True),
            [
                'spec: Invalid value: "{`nodeName`, `allNodes`}": '
                f"exactly one of {NODES} is required, but multiple fields are set"
            ],
        ),
        (
            resource_slice(perDeviceNodeSelection=False),
            ["spec.perDeviceNodeSelection: Invalid value: false: must be either unset or set to true"],
        ),
        (
            resource_slice(devices=[{"name": "d"}, {"name": "d"}]),
            ['spec.devices[1]: Duplicate value: "d"'],
        ),
        (
            with_device(allNodes=True),
            [
                "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if "
                "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
            ],
        ),
        (
            with_device(attributes={"a": {}, "b": {"int": 1, "bool": True}, "c": {"version": "1"}, "1": {"int": 1}}),
            [
                'spec.devices[0].attributes: Invalid value: "1": a valid C identifier must start with alphabetic '
                "character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or "
                "'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')",
                'spec.devices[0].attributes[a]: Invalid value: "": exactly one value must be specified',
                'spec.devices[0].attributes[b]: Invalid value: {"IntValue":1,"BoolValue":true,"StringValue":null,'
                '"VersionValue":null,"IntValues":null,"BoolValues":null,"StringValues":null,"VersionValues":null}: '
                "exactly one value must be specified",
                'spec.devices[0].attributes[c].version: Invalid value: "1": '
                "must be a string compatible with semver.org spec 2.0.0",
            ],
        ),
        (
            with_device(taints=[{"key": "k", "effect": "Evict"}]),
            [
                'spec.devices[0].taints[0].effect: Unsupported value: "Evict": '
                'supported values: "NoExecute", "NoSchedule", "None"'
            ],
        ),
        (
            with_device(consumesCounters=[{}]),
            [
                "spec.devices[0].consumesCounters[0].counterSet: Required value",
                "spec.devices[0].consumesCounters[0].counters: Required value",
            ],
        ),
        (
            with_device(capacity={"m": {"value": "1", "requestPolicy": {}}}),
            ["spec.devices[0].capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must be true"],
        ),
        (
            resource_slice(sharedCounters=[{"name": "c", "counters": {"a": {"value": "1"}}}], devices=[]),
            ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'],
        ),
    ],
)
def test_slice_errors_have_upstream_order(obj: Json, expected: list[str]) -> None:
    assert complaints(obj) == expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (capacity("4", default="1", validValues=["1", "2"]), []),
        (capacity("4", default="1", validRange={"min": "1", "max": "4", "step": "1"}), []),
        # The distance is -3 in Go's int64.
        (capacity(MOST, default=MOST, validRange={"min": f"{2 - 2**63}", "max": MOST, "step": "3"}), []),
        (capacity("4", validValues=["1"]), ["default: Required value: required when validValues is defined"]),
        (
            capacity("4", default="3", validValues=["2", "1", "8"]),
            [
                'validValues[1]: Invalid value: "1": values must be sorted in ascending order',
                'validValues[2]: Invalid value: "8": option is larger than capacity value: 4',
                'validValues: Invalid value: "3": default value is not valid according to the requestPolicy',
            ],
        ),
        (
            capacity("4", default="1", validRange={}),
            ["validRange.min: Required value: required when validRange is defined"],
        ),
        (
            capacity("4", default="2", validRange={"min": "1", "max": "6", "step": "2"}),
            [
                'validRange.max: Invalid value: "6": max is larger than capacity value: 4',
                'validRange.step: Invalid value: "2": value is not a multiple of a given step (2) from (1)',
                'validRange.step: Invalid value: "6": value is not a multiple of a given step (2) from (1)',
            ],
        ),
    ],
)
def test_request_policy_of_shared_capacity_is_validated(obj: Json, expected: list[str]) -> None:
    prefix = "spec.devices[0].capacity[m].requestPolicy."
    assert [text.removeprefix(prefix) for text in complaints(obj)] == expected


def test_too_many_devices_are_rejected_without_validation() -> None:
    names = [{"name": f"d{number}"} for number in range(129)]
    assert complaints(resource_slice(devices=names)) == ["spec.devices: Too many: 129: must have at most 128 items"]
    tainted = [{**each, "taints": [{"key": "k", "effect": "None"}]} for each in names[:65]]
    assert complaints(resource_slice(devices=tainted)) == ["spec.devices: Too many: 65: must have at most 64 items"]


def test_driver_pool_and_node_never_change() -> None:
    new, old = resource_slice(driver="y.io", nodeName="m"), resource_slice()
    assert [error.field for error in STRATEGY.validate_update(new, old)] == ["spec.driver", "spec.nodeName"]


def test_a_taint_remembers_when_it_was_added() -> None:
    obj = with_device(taints=[{"key": "k", "effect": "None"}])
    STRATEGY.default(obj)
    first = obj["spec"]["devices"][0]["taints"][0]["timeAdded"]
    STRATEGY.default(obj)
    assert obj["spec"]["devices"][0]["taints"][0]["timeAdded"] == first


def test_fields_of_disabled_features_are_dropped_unless_stored() -> None:
    device: Json = {"attributes": {"a": {"ints": [1]}}, "nodeAllocatableResourceMappings": {"cpu": {}}}
    new = with_device(**device)
    STRATEGY.prepare_for_create(new)
    assert new["spec"]["devices"] == [{"name": "d", "attributes": {"a": {}}}]
    kept = with_device(**device)
    STRATEGY.prepare_for_update(kept, with_device(**device))
    assert kept["spec"]["devices"] == [{"name": "d", **device}]


def test_slices_are_selected_by_node_and_driver() -> None:
    fields = RESOURCE_SLICES.fields_of(resource_slice())
    assert fields == {"metadata.name": "s", "spec.nodeName": "n", "spec.driver": "x.io"}


def test_driver_with_capitals_yields_a_warning() -> None:
    (warning,) = STRATEGY.warnings_on_create(resource_slice(driver="X.io"))
    assert warning == 'spec.driver: driver names should be lowercase; "X.io" contains uppercase characters'
