"""ResourceClaims, their templates and device classes: defaults, validation, status."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pilothouse.kube.resource.device_classes import DeviceClassStrategy
from pilothouse.kube.resource.resource_claim_templates import ResourceClaimTemplateStrategy
from pilothouse.kube.resource.resource_claims import (
    RESOURCE_CLAIMS,
    ResourceClaimStatusStrategy,
    ResourceClaimStrategy,
)
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery.objects import Json

STRATEGY, STATUS = ResourceClaimStrategy(), ResourceClaimStatusStrategy()
REQUEST: Json = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
RESULT: Json = {"request": "r", "driver": "x.io", "pool": "p", "device": "d"}


def claim(*requests: Json, status: Json | None = None, **devices: Any) -> Json:
    obj: Json = {
        "metadata": {"name": "c", "namespace": "n", "resourceVersion": "1"},
        "spec": {"devices": {"requests": deepcopy(list(requests)), **devices}},
        "status": status or {},
    }
    STRATEGY.default(obj)
    return obj


def exactly(**changes: Any) -> Json:
    return claim({"name": "r", "exactly": {"deviceClassName": "gpu", **changes}})


def complaints(obj: Json, strategy: KubeStrategy = STRATEGY) -> list[str]:
    return [str(error) for error in strategy.validate(obj)]


def of_status(status: Json, old: Json | None = None, **metadata: Any) -> list[str]:
    before, after = claim(REQUEST, status=old), claim(REQUEST, status=status)
    for obj in (before, after):
        obj["metadata"] |= metadata
    return [str(error) for error in STATUS.validate_update(after, before)]


def test_a_request_is_for_one_device_unless_it_says_more() -> None:
    obj = claim(REQUEST, {"name": "s", "firstAvailable": [{"name": "a", "tolerations": [{"key": "k"}]}]})
    first, second = obj["spec"]["devices"]["requests"]
    assert first["exactly"] == {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    assert second["firstAvailable"][0] == {
        "name": "a",
        "allocationMode": "ExactCount",
        "count": 1,
        "tolerations": [{"key": "k", "operator": "Equal"}],
    }
    assert "count" not in exactly(allocationMode="All")["spec"]["devices"]["requests"][0]["exactly"]
    assert complaints(claim(REQUEST)) == []


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            claim({"name": "r"}),
            ["spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"],
        ),
        (
            claim({**REQUEST, "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}),
            [
                "spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is "
                "required, but multiple fields are set"
            ],
        ),
        (claim(REQUEST, REQUEST), ['spec.devices.requests[1]: Duplicate value: "r"']),
        (claim(*[REQUEST] * 33), ["spec.devices.requests: Too many: 33: must have at most 32 items"]),
        (exactly(deviceClassName=""), ["spec.devices.requests[0].exactly.deviceClassName: Required value"]),
        (
            exactly(allocationMode="Some"),
            [
                'spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": '
                'supported values: "All", "ExactCount"'
            ],
        ),
        (
            exactly(allocationMode="All", count=2),
            [
                "spec.devices.requests[0].exactly.count: Invalid value: 2: "
                "must not be specified when allocationMode is 'All'"
            ],
        ),
        (
            exactly(count=-1),
            ["spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero"],
        ),
        (
            exactly(selectors=[{}, {"cel": {"expression": "device.driver"}}, {"cel": {"expression": "device.nosuch"}}]),
            [
                "spec.devices.requests[0].exactly.selectors[0].cel: Required value",
                'spec.devices.requests[0].exactly.selectors[1].cel.expression: Invalid value: "device.driver": '
                "must evaluate to bool or the unknown type, not string",
                'spec.devices.requests[0].exactly.selectors[2].cel.expression: Invalid value: "device.nosuch": '
                "compilation failed: ERROR: <input>:1:7: undefined field 'nosuch'\n | device.nosuch\n | ......^",
            ],
        ),
        (
            exactly(tolerations=[{"operator": "Exists", "value": "x", "effect": "Evict"}]),
            [
                'spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "x": '
                "must be empty for operator `Exists`",
                'spec.devices.requests[0].exactly.tolerations[0].effect: Unsupported value: "Evict": '
                'supported values: "NoExecute", "NoSchedule", "None"',
            ],
        ),
        (
            claim(REQUEST, constraints=[{"requests": ["nosuch"], "matchAttribute": "plain"}, {}]),
            [
                'spec.devices.constraints[0].requests[0]: Invalid value: "nosuch": must be the name of a request in '
                "the claim or the name of a request and a subrequest separated by '/'",
                'spec.devices.constraints[0].matchAttribute: Invalid value: "plain": '
                "a fully qualified name must be a domain and a name separated by a slash",
                'spec.devices.constraints[1]: Required value: exactly one of "matchAttribute" or "distinctAttribute" '
                "is required, but multiple fields are set",
            ],
        ),
        (
            claim(REQUEST, config=[{"requests": ["r"]}, {"opaque": {"driver": "", "parameters": [1]}}]),
            [
                "spec.devices.config[0].opaque: Required value",
                "spec.devices.config[1].opaque.driver: Required value",
                'spec.devices.config[1].opaque.parameters: Invalid value: "<value omitted>": '
                "must be a valid JSON object",
            ],
        ),
    ],
)
def test_claim_errors_have_upstream_order(obj: Json, expected: list[str]) -> None:
    assert complaints(obj) == expected


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "x.io"',
        'device.attributes["x.io"].isBig',
        'device.capacity["x.io"].memory.compareTo(quantity("1Gi")) >= 0',
        'cel.bind(own, device.attributes["x.io"], own.model == "a")',
        "device.allowMultipleAllocations",
    ],
)
def test_an_expression_sees_the_device(expression: str) -> None:
    assert complaints(exactly(selectors=[{"cel": {"expression": expression}}])) == []


def test_an_alternative_is_referred_to_by_its_requests_name_and_its_own() -> None:
    request = {"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}
    constraint = {"requests": ["r/a"], "matchAttribute": "x.io/model"}
    assert complaints(claim(request, constraints=[constraint])) == []
    assert len(complaints(claim(request, constraints=[{**constraint, "requests": ["r/b"]}]))) == 1
    assert len(complaints(claim(request, constraints=[{**constraint, "requests": ["r/a/b"]}]))) == 1


def test_claim_spec_is_immutable() -> None:
    new, old = claim(REQUEST), exactly(count=2)
    assert [str(error) for error in STRATEGY.validate_update(new, old)] == [
        'spec: Invalid value: {"Devices":{"Requests":[{"Name":"r","Exactly":{"DeviceClassName":"gpu","Selectors":null,'
        '"AllocationMode":"ExactCount","Count":1,"AdminAccess":null,"Tolerations":null,"Capacity":null},'
        '"FirstAvailable":null}],"Constraints":null,"Config":null}}: field is immutable'
    ]
    assert list(STRATEGY.validate_update(new, claim(REQUEST))) == []


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"allocation": {"devices": {"results": [RESULT]}}}, []),
        (
            {"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]},
            ["status.reservedFor: Forbidden: may not be specified when `allocated` is not set"],
        ),
        (
            {"allocation": {"devices": {"results": [{**RESULT, "request": "q", "shareID": "x"}]}}},
            [
                'status.allocation.devices.results[0].request: Invalid value: "q": must be the name of a request in '
                "the claim or the name of a request and a subrequest separated by '/'",
                'status.allocation.devices.results[0].shareID: Invalid value: "x": '
                "error validating uid: invalid UUID length: 1",
            ],
        ),
        (
            {"allocation": {"devices": {"results": [{**RESULT, "bindingConditions": ["a", "a"]}]}}},
            [
                'status.allocation.devices.results[0].bindingConditions[1]: Duplicate value: "a"',
                "status.allocation.devices.results[0].bindingFailureConditions: Invalid value: null: "
                "bindingFailureConditions are required to use bindingConditions",
            ],
        ),
        (
            {"allocation": {"devices": {"config": [{"opaque": {"driver": "x.io", "parameters": {}}}]}}},
            ["status.allocation.devices.config[0].source: Required value"],
        ),
        (
            {"devices": [{"driver": "x.io", "pool": "p", "device": "d", "networkData": {"ips": ["10.0.0.01/8"]}}]},
            [
                'status.devices[0]: Invalid value: {"Driver":"x.io","Pool":"p","Device":"d","ShareID":""}: '
                "must be an allocated device in the claim",
                'status.devices[0].networkData.ips[0]: Invalid value: "10.0.0.01/8": '
                'must be in canonical form ("10.0.0.1/8")',
            ],
        ),
    ],
)
def test_claim_status_errors_have_upstream_order(status: Json, expected: list[str]) -> None:
    assert of_status(status) == expected


def test_allocation_is_immutable_but_removable() -> None:
    allocated = {"allocation": {"devices": {"results": [RESULT]}}}
    other = {"allocation": {"devices": {"results": [{**RESULT, "device": "e"}]}}}
    (complaint,) = of_status(other, allocated)
    assert complaint.startswith('status.allocation: Invalid value: {"Devices":{"Results":[{"Request":"r",')
    assert complaint.endswith("field is immutable")
    assert of_status({}, allocated) == []


def test_nobody_can_reserve_a_claim_that_is_being_deleted() -> None:
    allocated: Json = {"allocation": {"devices": {"results": [RESULT]}}}
    users = [{"resource": "pods", "name": name, "uid": name} for name in "ab"]
    gone = {"deletionTimestamp": "2024-01-01T00:00:00Z"}
    assert of_status(allocated | {"reservedFor": users[:1]}, allocated | {"reservedFor": users}, **gone) == []
    assert of_status(allocated | {"reservedFor": users}, allocated | {"reservedFor": users[:1]}, **gone) == [
        "status.reservedFor: Forbidden: "
        "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
    ]


def test_status_of_deallocated_device_is_dropped() -> None:
    device = {"driver": "x.io", "pool": "p", "device": "d"}
    old = claim(REQUEST, status={"allocation": {"devices": {"results": [RESULT]}}, "devices": [device]})
    new = claim(REQUEST, status={"devices": [device]})
    STATUS.prepare_for_update(new, old)
    assert new["status"] == {}


@pytest.mark.parametrize(
    ("status", "deleted", "cell"),
    [
        ({}, False, "pending"),
        ({}, True, "deleted"),
        ({"allocation": {}}, False, "allocated"),
        ({"allocation": {}, "reservedFor": [{}]}, False, "allocated,reserved"),
        ({"allocation": {}}, True, "deleted,allocated"),
    ],
)
def test_the_table_sums_up_a_claims_state(status: Json, deleted: bool, cell: str) -> None:
    metadata = {"deletionTimestamp": "2024-01-01T00:00:00Z"} if deleted else {}
    assert RESOURCE_CLAIMS.columns[1].cell({"metadata": metadata, "status": status}) == cell


def test_a_template_is_checked_as_the_claims_it_makes_and_never_changes() -> None:
    strategy = ResourceClaimTemplateStrategy()
    template: Json = {
        "metadata": {"name": "t", "namespace": "n", "resourceVersion": "1"},
        "spec": {"metadata": {"labels": {"a": "b"}}, "spec": {"devices": {"requests": [deepcopy(REQUEST)]}}},
    }
    strategy.default(template)
    assert complaints(template, strategy) == []
    changed = deepcopy(template)
    changed["spec"]["spec"]["devices"]["requests"] = []
    (complaint,) = (str(error) for error in strategy.validate_update(changed, template))
    assert complaint.startswith('spec: Invalid value: {"labels":{"a":"b"},"Spec":{"Devices":{"Requests":[],')


def test_a_device_class_names_only_extended_resources() -> None:
    def device_class(**spec: Any) -> Json:
        return {"metadata": {"name": "gpu"}, "spec": spec}

    strategy = DeviceClassStrategy()
    assert complaints(device_class(extendedResourceName="example.com/gpu"), strategy) == []
    assert complaints(device_class(extendedResourceName="cpu"), strategy) == [
        'spec.extendedResourceName: Invalid value: "cpu": must be a valid extended resource name'
    ]
