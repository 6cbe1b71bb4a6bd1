"""Refusals and descriptions that are worded otherwise for one kind than for all others."""

from __future__ import annotations

import pytest
from rules import refusals
from whole_server import whole_server

from pilothouse.kube.apps.deployments import DEPLOYMENTS
from pilothouse.kube.rbac.roles import CLUSTER_ROLES

AS_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


def test_a_strategy_that_is_none_is_shown_with_its_zero_values() -> None:
    shown = '{"Type":"odd","RollingUpdate":{"MaxUnavailable":0,"MaxSurge":0}}'
    found = refusals(DEPLOYMENTS, {"spec": {"strategy": {"type": "odd", "rollingUpdate": {}}}})
    assert f'spec.strategy: Unsupported value: {shown}: supported values: "Recreate", "RollingUpdate"' in found


def test_a_selector_of_an_aggregation_that_cannot_be_used_is_named_once_more() -> None:
    wrong = {"matchExpressions": [{"key": "a", "operator": "In"}]}
    found = refusals(CLUSTER_ROLES, {"aggregationRule": {"clusterRoleSelectors": [wrong]}})
    assert found[-1] == "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector."


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "resource.k8s.io/v1/resourceslices",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: a",
        ),
        (
            "resource.k8s.io/v1beta2/resourceslices",
            "field label not supported for resource.k8s.io/v1beta2, Kind=ResourceSlice: a",
        ),
        ("batch/v1/jobs", 'field label "a" not supported for Job'),
    ],
)
async def test_a_field_label_is_refused_in_the_words_of_its_kind(path: str, message: str) -> None:
    async with whole_server(runtime_config="api/all=true") as api:
        refused = await api.request("GET", f"/apis/{path}?fieldSelector=a%3Db")
    assert (refused.status, refused.json["message"].endswith(message)) == (400, True)


async def test_an_empty_failure_policy_is_no_missing_one() -> None:
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    async with whole_server() as api:
        refused = await api.request("POST", policies, {"metadata": {"name": "p"}, "spec": {"failurePolicy": ""}})
    assert 'spec.failurePolicy: Unsupported value: "": supported values: "Fail", "Ignore"' in refused.json["message"]


@pytest.mark.parametrize(
    ("resource", "referable"),
    [
        ("rolebindings", "RoleRef can reference a Role in the current namespace or a ClusterRole"),
        ("clusterrolebindings", "RoleRef can only reference a ClusterRole"),
    ],
)
async def test_the_role_of_a_binding_is_described_as_in_v1beta1(resource: str, referable: str) -> None:
    async with whole_server() as api:
        table = await api.request("GET", f"/apis/rbac.authorization.k8s.io/v1/{resource}", accept=AS_TABLE)
    assert table.json["columnDefinitions"][1]["description"] == (
        f"{referable} in the global namespace. If the RoleRef cannot be resolved, the Authorizer must return an error."
    )
