"""Kinds that no stable version has: what is filled in, what is refused in which words, how they are shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from whole_server import whole_server

from pilothouse.machinery.objects import Json
from pilothouse.testing import API, Answer, server

_CANDIDATES = "coordination.k8s.io/v1beta1/namespaces/default/leasecandidates"
_RULES = "resource.k8s.io/v1alpha3/devicetaintrules"
_POOLS = "resource.k8s.io/v1alpha3/resourcepoolstatusrequests"
_VERSIONS = "internal.apiserver.k8s.io/v1alpha1/storageversions"
_KINDS = {
    _CANDIDATES: "LeaseCandidate",
    _RULES: "DeviceTaintRule",
    _POOLS: "ResourcePoolStatusRequest",
    _VERSIONS: "StorageVersion",
}
_CANDIDATE = {"leaseName": "l", "binaryVersion": "1.2.3", "emulationVersion": "1.2.0"}
_TAINT = {"key": "broken", "value": "yes", "effect": "NoSchedule"}
_COMPLETE = {
    "type": "Complete",
    "status": "True",
    "reason": "Done",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path, runtime_config="api/all=true") as api:
        yield api


async def _create(api: API, resource: str, spec: Json, name: str = "one") -> Answer:
    group, version = resource.split("/")[:2]
    obj = {"apiVersion": f"{group}/{version}", "kind": _KINDS[resource], "metadata": {"name": name}, "spec": spec}
    return await api.request("POST", f"/apis/{resource}", obj)


async def _say(api: API, resource: str, status: Json, name: str = "one") -> Answer:
    return await api.request(
        "PATCH", f"/apis/{resource}/{name}/status", {"status": status}, media="application/merge-patch+json"
    )


async def _cells(api: API, resource: str, name: str = "one") -> list[object]:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = (await api.request("GET", f"/apis/{resource}/{name}", accept=accept)).json
    cells: list[object] = table["rows"][0]["cells"]
    return cells


def _complaints(answer: Answer) -> list[str]:
    assert answer.status == 422, answer.body
    return [f"{cause['field']}: {cause['message']}" for cause in answer.json["details"]["causes"]]


async def test_none_is_open_where_no_version_has_it() -> None:
    async with server(process=True) as api:  # whose metrics are of nobody else
        for resource in _KINDS:
            assert (await api.request("GET", f"/apis/{resource}")).status == 404
        metrics = (await api.request("GET", "/metrics")).body.decode()
    assert "leasecandidates" not in metrics


async def test_a_candidate_for_a_lease_is_kept_and_shown_in_both_versions(api: API) -> None:
    created = await _create(api, _CANDIDATES, _CANDIDATE | {"strategy": "OldestEmulationVersion"})
    assert created.status == 201
    warning = "coordination.k8s.io/v1beta1 LeaseCandidate is deprecated in v1.36+, unavailable in v1.39+"
    assert created.headers["warning"] == f'299 - "{warning}"'
    assert (await _cells(api, _CANDIDATES))[:4] == ["one", "l", "1.2.3", "1.2.0"]
    alpha = await api.request("GET", f"/apis/{_CANDIDATES.replace('v1beta1', 'v1alpha2')}/one")
    assert (alpha.json["apiVersion"], alpha.json["spec"]) == ("coordination.k8s.io/v1alpha2", created.json["spec"])


async def test_a_candidate_says_its_versions_and_its_strategy(api: API) -> None:
    assert _complaints(await _create(api, _CANDIDATES, {})) == [
        "spec.leaseName: Required value",
        "spec.binaryVersion: Required value",
        "spec.strategy: Required value",
    ]
    wrong = _CANDIDATE | {"binaryVersion": "1", "emulationVersion": "2", "strategy": "OldestEmulationVersion"}
    assert _complaints(await _create(api, _CANDIDATES, wrong)) == [
        'spec.emulationVersion: Invalid value: "2": must be a valid semantic version',
        'spec.binaryVersion: Invalid value: "1": must be a valid semantic version',
        "spec.emulationVersion: Required value: must be specified when `strategy` is 'OldestEmulationVersion'",
    ]
    newer = _CANDIDATE | {"emulationVersion": "1.3.0", "strategy": "Youngest"}
    assert _complaints(await _create(api, _CANDIDATES, newer)) == [
        'spec.binaryVersion: Invalid value: "1.2.3": must be greater than or equal to `emulationVersion`',
        'spec.strategy.strategy: Unsupported value: "Youngest": supported values: "OldestEmulationVersion"',
    ]


async def test_a_taint_is_timed_from_its_effect_on(api: API) -> None:
    created = await _create(api, _RULES, {"taint": _TAINT | {"timeAdded": "2020-01-01T00:00:00Z"}})
    assert created.json["metadata"]["generation"] == 1
    patch = {"spec": {"taint": {"effect": "NoExecute"}}}
    beta = f"/apis/{_RULES.replace('v1alpha3', 'v1beta2')}/one"
    changed = await api.request("PATCH", beta, patch, media="application/merge-patch+json")
    assert "warning" not in changed.headers
    assert changed.json["spec"]["taint"]["timeAdded"] > "2020-01-01T00:00:00Z"
    assert changed.json["metadata"]["generation"] == 2
    assert (await _cells(api, _RULES))[:4] == ["one", "broken", "yes", "NoExecute"]


async def test_a_taint_rule_names_valid_drivers_pools_devices_and_effects(api: API) -> None:
    spec = {"deviceSelector": {"driver": "", "pool": "", "device": "X"}, "taint": {"key": "a", "effect": "Some"}}
    assert [each.partition(" (")[0] for each in _complaints(await _create(api, _RULES, spec))] == [
        "spec.deviceSelector.driver: Required value",
        "spec.deviceSelector.pool: Required value",
        'spec.deviceSelector.device: Invalid value: "X": a lowercase RFC 1123 label must consist of lower case '
        "alphanumeric characters or '-', and must start and end with an alphanumeric character",
        'spec.taint.effect: Unsupported value: "Some": supported values: "NoExecute", "NoSchedule", "None"',
    ]


async def test_a_question_about_pools_is_answered_once(api: API) -> None:
    created = await _create(api, _POOLS, {"driver": "example.com"})
    assert created.json["spec"] == {"driver": "example.com", "limit": 100}
    assert await _cells(api, _POOLS) == ["one", "example.com", "-", "-", "-", "-", "-", 0, "Pending", "<none>"]
    assert _complaints(await _say(api, _POOLS, {"pools": [{"driver": "example.com"}]})) == [
        "status.poolCount: Required value",
        "status.pools[0].poolName: Required value",
        "status.pools[0].generation: Required value",
    ]
    pool = {"driver": "example.com", "poolName": "p", "generation": 1, "totalDevices": 3, "validationError": "x"}
    assert (await _say(api, _POOLS, {"poolCount": 2, "pools": [pool], "conditions": [_COMPLETE]})).status == 200
    shown = await _cells(api, _POOLS)
    assert shown[2:9] == ["3", "0", "0", "0", "1", 2, "Complete (1/2 pools)"]
    again = await _say(api, _POOLS, {"poolCount": 3, "pools": None, "conditions": None})
    assert _complaints(again) == [
        'status: Invalid value: {"PoolCount":3,"Pools":null,"Conditions":null}: field is immutable'
    ]


async def test_a_question_about_pools_names_a_driver_and_never_changes(api: API) -> None:
    assert _complaints(await _create(api, _POOLS, {"poolName": "a//b", "limit": 1001})) == [
        "spec.driver: Required value",
        'spec.poolName: Invalid value: "a//b": segment 1: must not be empty',
        "spec.limit: Invalid value: 1001: must be less than or equal to 1000",
    ]
    await _create(api, _POOLS, {"driver": "Example.com"})
    changed = await api.request(
        "PATCH", f"/apis/{_POOLS}/one", {"spec": {"limit": 5}}, media="application/merge-patch+json"
    )
    assert _complaints(changed) == ["spec: Invalid value: null: field is immutable"]


async def test_servers_agree_on_a_storage_version(api: API) -> None:
    name, server = "apps.deployments", {"encodingVersion": "apps/v1", "decodableVersions": ["apps/v1"]}
    assert (await _create(api, _VERSIONS, {}, name)).status == 201
    assert (await _cells(api, _VERSIONS, name))[:3] == [name, "<unset>", "<unset>"]
    servers = [server | {"apiServerID": each} for each in ("a", "b", "c", "d")]
    assert _complaints(await _say(api, _VERSIONS, {"storageVersions": servers}, name)) == [
        "status.commonEncodingVersion: Invalid value: null: the common encoding version is apps/v1"
    ]
    agreed = {"storageVersions": servers, "commonEncodingVersion": "apps/v1"}
    assert (await _say(api, _VERSIONS, agreed, name)).status == 200
    shown = await _cells(api, _VERSIONS, name)
    assert shown[:3] == [name, "apps/v1", "a=apps/v1,b=apps/v1,c=apps/v1 + 1 more..."]


async def test_a_storage_version_is_of_one_group_and_resource(api: API) -> None:
    assert _complaints(await _create(api, _VERSIONS, {}, "deployments")) == [
        'metadata.name: Invalid value: "deployments": name must be in the form of <group>.<resource>'
    ]
    assert (await _create(api, _VERSIONS, {}, "apps.deployments")).status == 201
    server = {"apiServerID": "a", "encodingVersion": "a/b/c", "servedVersions": ["/v1"]}
    refused = await _say(
        api, _VERSIONS, {"storageVersions": [server], "commonEncodingVersion": "v2"}, "apps.deployments"
    )
    assert [each.rpartition(": ")[0] for each in _complaints(refused)] == [
        'status.storageVersions[0].encodingVersion: Invalid value: "a/b/c"',
        "status.storageVersions[0].decodableVersions: Invalid value: null",
        'status.storageVersions[0].servedVersions[0]: Invalid value: "/v1": group part',
        'status.storageVersions[0].servedVersions[0]: Invalid value: "/v1": individual served version : /v1 must be '
        "included in decodableVersions ",
        'status.commonEncodingVersion: Invalid value: "v2"',
    ]
