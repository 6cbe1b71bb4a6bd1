"""Beta and alpha versions that --runtime-config turns on: who serves them, how they convert, what they warn of."""

from __future__ import annotations

from pathlib import Path

import pytest
from whole_server import whole_server

from pilothouse.machinery.objects import Json
from pilothouse.testing import API

_STABLE_ONLY = {"networking.k8s.io", "storage.k8s.io", "admissionregistration.k8s.io", "resource.k8s.io"}


async def _versions(api: API) -> dict[str, list[str]]:
    groups: list[Json] = (await api.request("GET", "/apis")).json["groups"]
    return {group["name"]: [each["version"] for each in group["versions"]] for group in groups}


async def _resources(api: API, version: str) -> set[str]:
    return {each["name"] for each in (await api.request("GET", f"/apis/{version}")).json["resources"]}


async def test_none_is_served_unless_it_is_asked_for(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as api:
        versions = await _versions(api)
    assert {group: versions[group] for group in _STABLE_ONLY} == {group: ["v1"] for group in _STABLE_ONLY}


async def test_all_are_served_where_all_are_turned_on(tmp_path: Path) -> None:
    async with whole_server(tmp_path, runtime_config="api/all=true") as api:
        versions = await _versions(api)
        assert versions["admissionregistration.k8s.io"] == ["v1", "v1beta1", "v1alpha1"]
        assert versions["networking.k8s.io"] == ["v1", "v1beta1"]
        assert versions["resource.k8s.io"][:3] == ["v1", "v1beta2", "v1beta1"]
        assert await _resources(api, "storage.k8s.io/v1beta1") == {"volumeattributesclasses"}
        served = {"ipaddresses", "servicecidrs", "servicecidrs/status"}
        assert await _resources(api, "networking.k8s.io/v1beta1") == served
        documented = (await api.request("GET", "/openapi/v3")).json["paths"]
        assert {"apis/networking.k8s.io/v1beta1", "apis/resource.k8s.io/v1beta1"} <= documented.keys()


async def test_beta_versions_do_not_bring_alpha_versions(tmp_path: Path) -> None:
    async with whole_server(tmp_path, runtime_config="api/beta=true") as api:
        assert (await _versions(api))["admissionregistration.k8s.io"] == ["v1", "v1beta1"]


async def test_one_version_is_turned_on_alone(tmp_path: Path) -> None:
    async with whole_server(tmp_path, runtime_config="storage.k8s.io/v1beta1=true") as api:
        versions = await _versions(api)
    assert versions["storage.k8s.io"] == ["v1", "v1beta1"]
    assert versions["networking.k8s.io"] == ["v1"]


async def test_a_version_that_nothing_is_served_in_may_be_named(tmp_path: Path) -> None:
    async with whole_server(tmp_path, runtime_config="apps/v1beta1=true") as api:
        assert (await _versions(api))["apps"] == ["v1"]


_BINDING: Json = {"spec": {"policyName": "some"}}
_OF_ONE_SHAPE: list[tuple[str, str, Json, str]] = [
    (
        "networking.k8s.io/v1beta1/servicecidrs",
        "ServiceCIDR",
        {"spec": {"cidrs": ["10.9.0.0/24"]}},
        "networking.k8s.io/v1beta1 ServiceCIDR is deprecated in v1.34+, unavailable in v1.37+",
    ),
    (
        "storage.k8s.io/v1beta1/volumeattributesclasses",
        "VolumeAttributesClass",
        {"driverName": "example.com", "parameters": {"iops": "3000"}},
        "storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable in v1.37+; "
        "use storage.k8s.io/v1 VolumeAttributesClass",
    ),
    (
        "admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
        _BINDING,
        "",
    ),
    (
        "admissionregistration.k8s.io/v1alpha1/mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
        _BINDING,
        "admissionregistration.k8s.io/v1alpha1 MutatingAdmissionPolicyBinding is deprecated in v1.35+, "
        "unavailable in v1.38+",
    ),
    (
        "resource.k8s.io/v1beta2/deviceclasses",
        "DeviceClass",
        {"spec": {}},
        "resource.k8s.io/v1beta2 DeviceClass is deprecated in v1.36+, unavailable in v1.39+",
    ),
]


@pytest.mark.parametrize(("resource", "kind", "content", "warning"), _OF_ONE_SHAPE)
async def test_what_is_written_in_one_version_is_read_in_another(
    tmp_path: Path, resource: str, kind: str, content: Json, warning: str
) -> None:
    version, plural = resource.rsplit("/", 1)
    async with whole_server(tmp_path, runtime_config=f"{version}=true") as api:
        obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "one"}, **content}
        created = await api.request("POST", f"/apis/{resource}", obj)
        assert (created.status, created.json["apiVersion"]) == (201, version)
        assert created.headers.get("warning", "") == (f'299 - "{warning}"' if warning else "")
        stable = f"/apis/{version.partition('/')[0]}/v1/{plural}/one"
        shown = await api.request("GET", stable)
        assert shown.status == 200
        assert "warning" not in shown.headers
        unlike = {key for key in shown.json if shown.json[key] != created.json.get(key)}
        assert unlike == {"apiVersion"}


async def test_a_claim_of_the_first_beta_has_what_it_asks_for_in_the_request(tmp_path: Path) -> None:
    requests = [
        {"name": "one", "deviceClassName": "gpu", "tolerations": [{"key": "a"}]},
        {"name": "two", "firstAvailable": [{"name": "big", "deviceClassName": "big", "allocationMode": "All"}]},
    ]
    async with whole_server(tmp_path, runtime_config="resource.k8s.io/v1beta1=true") as api:
        path = "/apis/resource.k8s.io/{}/namespaces/default/resourceclaims"
        obj = {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaim", "metadata": {"name": "one"}}
        created = await api.request("POST", path.format("v1beta1"), obj | {"spec": {"devices": {"requests": requests}}})
        stored = await api.request("GET", path.format("v1") + "/one")
    asked = {"allocationMode": "ExactCount", "count": 1, "tolerations": [{"key": "a", "operator": "Equal"}]}
    assert created.json["spec"]["devices"]["requests"] == [
        {"name": "one", "deviceClassName": "gpu", **asked},
        {"name": "two", "deviceClassName": "", "firstAvailable": requests[1]["firstAvailable"]},
    ]
    assert stored.json["spec"]["devices"]["requests"] == [
        {"name": "one", "exactly": {"deviceClassName": "gpu", **asked}},
        {"name": "two", "firstAvailable": requests[1]["firstAvailable"]},
    ]


async def test_a_request_of_the_first_beta_that_asks_for_nothing_is_refused(tmp_path: Path) -> None:
    async with whole_server(tmp_path, runtime_config="resource.k8s.io/v1beta1=true") as api:
        obj = {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one"}}
        obj["spec"] = {"spec": {"devices": {"requests": [{"name": "one"}]}}}
        path = "/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaimtemplates"
        refused = await api.request("POST", path, obj)
    assert refused.status == 422
    assert refused.json["message"] == (
        'ResourceClaimTemplate.resource.k8s.io "one" is invalid: spec.spec.devices.requests[0]: Required value: '
        "exactly one of `exactly` or `firstAvailable` is required"
    )


async def test_a_slice_of_the_first_beta_has_the_fields_of_a_device_in_basic(tmp_path: Path) -> None:
    basic = {"attributes": {"model": {"string": "a"}}, "capacity": {"memory": {"value": "1Gi"}}}
    spec = {"driver": "example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n"}
    async with whole_server(tmp_path, runtime_config="resource.k8s.io/v1beta1=true") as api:
        obj = {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceSlice", "metadata": {"name": "one"}}
        obj["spec"] = spec | {"devices": [{"name": "a", "basic": basic}, {"name": "b"}]}
        created = await api.request("POST", "/apis/resource.k8s.io/v1beta1/resourceslices", obj)
        stored = await api.request("GET", "/apis/resource.k8s.io/v1/resourceslices/one")
    assert created.json["spec"]["devices"] == [{"name": "a", "basic": basic}, {"name": "b", "basic": {}}]
    assert stored.json["spec"]["devices"] == [{"name": "a", **basic}, {"name": "b"}]
    assert stored.json["spec"]["nodeName"] == "n"
