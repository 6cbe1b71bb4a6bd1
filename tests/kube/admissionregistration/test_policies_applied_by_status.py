"""The status of a validating policy is the one through which an apply creates the whole object."""

from __future__ import annotations

from whole_server import whole_server

from pilothouse.client import Json

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
APPLY = "application/apply-patch+yaml"


def policy(spec: Json) -> Json:
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    return {**kind, "metadata": {"name": "p"}, "spec": spec}


async def test_an_apply_creates_a_policy_that_is_valid() -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    spec = {"validations": [{"expression": "true"}], "matchConstraints": {"resourceRules": [rule]}}
    async with whole_server() as api:
        refused = await api.request("PATCH", f"{POLICIES}/p/status?fieldManager=m", policy({}), media=APPLY)
        made = await api.request("PATCH", f"{POLICIES}/p/status?fieldManager=m", policy(spec), media=APPLY)
        found = await api.request("GET", f"{POLICIES}/p")
    assert (refused.status, refused.json["reason"]) == (422, "Invalid")
    assert (made.status, found.status) == (201, 200)
    assert found.json["spec"]["validations"] == [{"expression": "true"}]
