"""Kinds that a feature gate turns on: what is filled in, what is refused in which words, how they are shown."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from whole_server import whole_server

from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import format_time
from pilothouse.testing import API, Answer

_BUNDLES = "certificates.k8s.io/v1beta1/clustertrustbundles"
_REQUESTS = "certificates.k8s.io/v1beta1/namespaces/default/podcertificaterequests"
_WORKLOADS = "scheduling.k8s.io/v1alpha2/namespaces/default/workloads"
_GROUPS = "scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
_MIGRATIONS = "storagemigration.k8s.io/v1beta1/storageversionmigrations"
_KINDS = {
    _BUNDLES: "ClusterTrustBundle",
    _REQUESTS: "PodCertificateRequest",
    _WORKLOADS: "Workload",
    _GROUPS: "PodGroup",
    _MIGRATIONS: "StorageVersionMigration",
}
_GATES = (
    "ClusterTrustBundle GenericWorkload PodCertificateRequest StorageVersionMigrator DRAWorkloadResourceClaims "
    "TopologyAwareWorkloadScheduling GangScheduling WorkloadAwarePreemption"
)
pytestmark = pytest.mark.asyncio(loop_scope="module")

_KEY = ec.generate_private_key(ec.SECP256R1())
_NOW = datetime.now(UTC).replace(microsecond=0)
_GANG = {"gang": {"minCount": 2}}
_IMMUTABLE = "Invalid value: null: field is immutable"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api() -> AsyncIterator[API]:
    gates = ",".join(f"{name}=true" for name in _GATES.split())
    async with whole_server(runtime_config="api/all=true", feature_gates=gates) as api:
        yield api


async def _create(api: API, resource: str, spec: Json, name: str = "one") -> Answer:
    group, version = resource.split("/")[:2]
    obj = {"apiVersion": f"{group}/{version}", "kind": _KINDS[resource], "metadata": {"name": name}, "spec": spec}
    return await api.request("POST", f"/apis/{resource}", obj)


async def _patch(api: API, path: str, patch: Json) -> Answer:
    return await api.request("PATCH", f"/apis/{path}", patch, media="application/merge-patch+json")


async def _cells(api: API, resource: str) -> list[object]:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = (await api.request("GET", f"/apis/{resource}/one", accept=accept)).json
    cells: list[object] = table["rows"][0]["cells"]
    return cells


def _complaints(answer: Answer) -> list[str]:
    assert answer.status == 422, answer.body
    return [f"{cause['field']}: {cause['message']}" for cause in answer.json["details"]["causes"]]


def _certificate(*, authority: bool, days: int = 1, now: datetime = _NOW) -> str:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    built = (
        x509.CertificateBuilder(name, name, _KEY.public_key(), 7, now, now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(authority, None), critical=True)
        .sign(_KEY, SHA256())
    )
    return built.public_bytes(Encoding.PEM).decode()


def _request_spec(**changes: object) -> Json:
    request = x509.CertificateSigningRequestBuilder(x509.Name([])).sign(_KEY, SHA256()).public_bytes(Encoding.DER)
    names = {"podName": "p", "podUID": "u", "serviceAccountName": "s", "serviceAccountUID": "v"}
    node = {"nodeName": "n", "nodeUID": "w", "signerName": "example.com/signer"}
    return names | node | {"stubPKCS10Request": base64.b64encode(request).decode()} | changes


def _condition(kind: str) -> Json:
    return {"type": kind, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


async def test_no_gate_no_kind(tmp_path: Path) -> None:
    async with whole_server(tmp_path, runtime_config="api/all=true") as api:
        for resource in _KINDS:
            assert (await api.request("GET", f"/apis/{resource}")).status == 404
        groups = [group["name"] for group in (await api.request("GET", "/apis")).json["groups"]]
    assert "storagemigration.k8s.io" not in groups


async def test_a_trust_bundle_has_certificates_of_authorities_and_its_signers_name(api: API) -> None:
    created = await _create(api, _BUNDLES, {"trustBundle": _certificate(authority=True)})
    assert created.status == 201
    assert await _cells(api, _BUNDLES) == ["one", "<none>"]
    alpha = await api.request("GET", f"/apis/{_BUNDLES.replace('v1beta1', 'v1alpha1')}/one")
    assert alpha.json["spec"] == created.json["spec"]
    assert "deprecated in v1.34+, unavailable in v1.37+" in alpha.headers["warning"]
    path = 'spec.trustBundle: Invalid value: "<value omitted>":'
    for bundle, problem in (
        (_certificate(authority=False), "entry 0 does not have the CA bit set"),
        ("", "at least one trust anchor must be provided"),
        (_certificate(authority=True) * 2, "duplicate trust anchor (indices [0 1])"),
    ):
        if bundle.count("BEGIN") == 2:
            bundle = bundle[: len(bundle) // 2] * 2
        assert _complaints(await _create(api, _BUNDLES, {"trustBundle": bundle}, "two")) == [f"{path} {problem}"]
    spec = {"trustBundle": _certificate(authority=True), "signerName": "example.com/signer"}
    assert _complaints(await _create(api, _BUNDLES, spec, "two")) == [
        'metadata.name: Invalid value: "two": ClusterTrustBundle for signerName example.com/signer must be named '
        "with prefix example.com:signer:"
    ]
    assert (await _create(api, _BUNDLES, spec, "example.com:signer:two")).status == 201


async def test_a_pods_certificate_is_issued_once_and_to_its_key(api: API) -> None:
    created = await _create(api, _REQUESTS, _request_spec())
    assert created.json["spec"]["maxExpirationSeconds"] == 86400
    both = _request_spec(pkixPublicKey="AAAA")
    assert _complaints(await _create(api, _REQUESTS, both, "two")) == [
        "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"
    ]
    status = f"{_REQUESTS}/one/status"
    assert _complaints(await _patch(api, status, {"status": {"notBefore": "2026-01-01T00:00:00Z"}})) == [
        'status: Invalid value: status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
    ]
    now = datetime.now(UTC).replace(microsecond=0)
    issued = {
        "conditions": [_condition("Issued")],
        "certificateChain": _certificate(authority=False, now=now),
        "notBefore": format_time(now),
        "notAfter": format_time(now + timedelta(days=1)),
        "beginRefreshAt": format_time(now + timedelta(minutes=5)),
    }
    assert _complaints(await _patch(api, status, {"status": issued})) == [
        f'status.beginRefreshAt: Invalid value: "{format_time(now + timedelta(minutes=5))}": '
        "must be at least 10 minutes after status.notBefore"
    ]
    issued["beginRefreshAt"] = format_time(now + timedelta(hours=12))
    assert (await _patch(api, status, {"status": issued})).status == 200
    assert await _cells(api, _REQUESTS) == ["one", "p", "s", "n", "example.com/signer", "Issued", "<none>"]
    assert _complaints(await _patch(api, status, {"status": {"conditions": [_condition("Denied")]}})) == [
        "status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"
    ]


async def test_a_workload_is_templates_of_groups_that_never_change(api: API) -> None:
    templates = [{"name": "t", "schedulingPolicy": _GANG, "disruptionMode": "PodGroup"}]
    created = await _create(api, _WORKLOADS, {"podGroupTemplates": templates})
    assert created.status == 201, created.body
    changed = await _patch(api, f"{_WORKLOADS}/one", {"spec": {"podGroupTemplates": []}})
    assert _complaints(changed) == [
        f"spec.podGroupTemplates: {_IMMUTABLE}",
        "spec.podGroupTemplates: Required value",
    ]
    bad = {"name": "t", "schedulingPolicy": {"basic": {}, "gang": {}}, "resourceClaims": [{"name": ""}]}
    assert _complaints(await _create(api, _WORKLOADS, {"podGroupTemplates": [bad]}, "two")) == [
        'spec.podGroupTemplates[0].schedulingPolicy: Invalid value: "{basic, gang}": '
        "must specify exactly one of: `basic`, `gang`",
        "spec.podGroupTemplates[0].schedulingPolicy.gang.minCount: Required value",
        'spec.podGroupTemplates[0].resourceClaims[0]: Invalid value: "": '
        "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        "spec.podGroupTemplates[0].resourceClaims[0].name: Required value",
    ]


async def test_a_group_of_pods_follows_its_workload_and_its_priority_class(api: API) -> None:
    await _create(api, _WORKLOADS, {"podGroupTemplates": [{"name": "t", "schedulingPolicy": _GANG}]}, "gangs")
    reference = {"workload": {"workloadName": "gangs", "podGroupTemplateName": "t"}}
    spec = {"schedulingPolicy": _GANG, "podGroupTemplateRef": reference}
    created = await _create(api, _GROUPS, spec)
    assert created.json["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
    assert created.json["spec"]["priority"] == 0
    assert created.json["spec"]["disruptionMode"] == "Pod"
    assert (await _cells(api, _GROUPS))[:4] == ["one", "Gang", "gangs", "Pending"]
    nobodys = {"workload": {"workloadName": "gangs", "podGroupTemplateName": "other"}}
    refused = await _create(api, _GROUPS, spec | {"podGroupTemplateRef": nobodys}, "two")
    assert (refused.status, refused.json["message"]) == (
        403,
        'podgroups.scheduling.k8s.io "two" is forbidden: PodGroup rejected: '
        'PodGroupTemplate "other" not found in Workload "gangs"',
    )
    ranked = await _create(api, _GROUPS, spec | {"priorityClassName": "system-node-critical", "priority": 3}, "two")
    assert "priority set in the pod group (3) must match the priority computed (2000001000)" in ranked.json["message"]
    changed = await _patch(api, f"{_GROUPS}/one", {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})
    assert _complaints(changed) == [f"spec.schedulingPolicy: {_IMMUTABLE}"]


async def test_fields_of_workload_features_that_are_off_are_dropped(tmp_path: Path) -> None:
    flags = {"runtime_config": "api/all=true", "feature_gates": "GenericWorkload=true"}
    async with whole_server(tmp_path, **flags) as api:
        extra = {"priority": 5, "schedulingConstraints": {"topology": []}, "resourceClaims": [{"name": "a"}]}
        created = await _create(api, _GROUPS, {"schedulingPolicy": _GANG} | extra)
    assert created.json["spec"] == {"podGroupTemplateRef": None, "schedulingPolicy": _GANG}


async def test_a_migration_of_stored_objects_ends_once(api: API) -> None:
    created = await _create(api, _MIGRATIONS, {"resource": {"group": "apps", "resource": "deployments"}})
    assert created.status == 201
    assert await _cells(api, _MIGRATIONS) == ["one", "deployments.apps", "Unknown"]
    status = f"{_MIGRATIONS}/one/status"
    assert _complaints(await _patch(api, status, {"status": {"resourceVersion": "01"}})) == [
        'status.resourceVersion: Invalid value: "01": resource version is not well formed: 01'
    ]
    done = {"resourceVersion": "12", "conditions": [_condition("Succeeded")]}
    assert (await _patch(api, status, {"status": done})).status == 200
    shown = '[{"type":"Running","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"R","message":""}]'
    assert _complaints(await _patch(api, status, {"status": {"conditions": [_condition("Running")]}})) == [
        f"status.conditions: Invalid value: {shown}: Success condition cannot be set to false once it is true"
    ]
