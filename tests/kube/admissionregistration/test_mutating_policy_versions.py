"""Mutating policies are served as v1 and stored as v1beta1."""

from __future__ import annotations

from pathlib import Path

import orjson
from whole_server import store_of, whole_server

from pilothouse.machinery.objects import Json

BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
KEY = "/registry/mutatingadmissionpolicybindings/b"


async def test_a_binding_reads_back_as_it_was_written(tmp_path: Path) -> None:
    sent: Json = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "matchResources": {}},
    }
    async with whole_server(tmp_path) as api:
        created = await api.request("POST", BINDINGS, sent)
        assert created.status == 201, created.body
        read = (await api.request("GET", f"{BINDINGS}/b")).json
        patch = {"spec": {"policyName": "q"}}
        patched = (await api.request("PATCH", f"{BINDINGS}/b", patch, media="application/merge-patch+json")).json
    async with store_of(tmp_path) as store:
        stored = await store.get(KEY)
    assert read["apiVersion"] == patched["apiVersion"] == sent["apiVersion"]
    assert read["spec"]["matchResources"] == {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
    }
    assert (patched["spec"]["policyName"], patched["metadata"]["generation"]) == ("q", 2)
    assert stored is not None
    assert orjson.loads(stored.value)["apiVersion"] == "admissionregistration.k8s.io/v1beta1"


async def test_v1alpha1_binding_denies_requests_without_parameters_by_default() -> None:
    group = "admissionregistration.k8s.io"
    binding: Json = {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "paramRef": {"name": "x"}},
    }
    async with whole_server(runtime_config=f"{group}/v1alpha1=true") as api:
        path = f"/apis/{group}/v1alpha1/mutatingadmissionpolicybindings"
        created = await api.request("POST", path, binding)
        assert created.status == 201, created.body
        assert created.json["spec"]["paramRef"] == {"name": "x", "parameterNotFoundAction": "Deny"}
        refused = await api.request("POST", BINDINGS, binding | {"apiVersion": f"{group}/v1"})
        assert refused.status == 422
        assert "spec.paramRef.parameterNotFoundAction: Required value" in refused.json["message"]
