"""What quotas may limit, in which scopes, and how the table shows their use."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.core.resourcequotas import RESOURCE_QUOTAS, ResourceQuotaStatusStrategy
from pilothouse.machinery.objects import Json


def quota(hard: Json | None = None, status: Json | None = None, **spec: Any) -> Json:
    return {"metadata": {"name": "q"}, "spec": {"hard": hard or {}, **spec}, "status": status or {}}


def scoped(*expressions: Json, **hard: str) -> Json:
    return quota(hard, scopeSelector={"matchExpressions": list(expressions)})


@pytest.mark.parametrize(
    "name", ["pods", "requests.cpu", "hugepages-2Mi", "count/widgets.example.com", "example.com/x"]
)
def test_quota_for_uncountable_resource_is_invalid(name: str) -> None:
    assert refusals(RESOURCE_QUOTAS, quota({name: "1"})) == []


def test_storage_is_not_a_quota_resource() -> None:
    assert refusals(RESOURCE_QUOTAS, quota({"storage": "1"})) == [
        'spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota'
    ]


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        (
            quota({"requests.cpu": "1", "memory": "1"}, scopes=["BestEffort"]),
            ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'] * 2,
        ),
        (
            quota(scopes=["Terminating", "NotTerminating"]),
            ['spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes'],
        ),
        (quota({"requests.storage": "1"}, scopes=["VolumeAttributesClass"]), []),
        (
            scoped({"scopeName": "Odd", "operator": "Exists"}),
            ['spec.scopeSelector.matchExpressions.scopeName: Invalid value: "Odd": unsupported scope'],
        ),
        (
            scoped({"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]}),
            [
                'spec.scopeSelector.matchExpressions.values: Invalid value: ["a"]: '
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            ],
        ),
        (scoped({"scopeName": "Terminating", "operator": "Exists"}), []),
        (scoped({"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}, pods="1", cpu="1"), []),
        (scoped(*({"scopeName": name, "operator": "Exists"} for name in ("BestEffort", "Terminating"))), []),
        (
            scoped(*({"scopeName": name, "operator": "Exists"} for name in ("BestEffort", "NotBestEffort"))),
            ["spec.scopeSelector.matchExpressions: Invalid value: null: conflicting scopes"],
        ),
        (
            scoped(*({"scopeName": name, "operator": "Exists"} for name in ("NotTerminating", "Terminating"))),
            ["spec.scopeSelector.matchExpressions: Invalid value: null: conflicting scopes"],
        ),
        (
            scoped({"scopeName": "PriorityClass", "operator": "NotIn"}),
            [
                "spec.scopeSelector.matchExpressions.values: Required value: "
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            ],
        ),
        (
            scoped({"scopeName": "Terminating", "operator": "In", "values": ["x"]}),
            [
                'spec.scopeSelector.matchExpressions.operator: Invalid value: "In": '
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
                "ResourceQuotaScopeCrossNamespacePodAffinity"
            ],
        ),
        (
            scoped({"scopeName": "PriorityClass", "operator": "Like"}),
            ['spec.scopeSelector.matchExpressions.operator: Invalid value: "Like": not a valid selector operator'],
        ),
        (
            scoped({"scopeName": "PriorityClass", "operator": "Exists"}, services="1"),
            [
                "spec.scopeSelector.matchExpressions: Invalid value: "
                '{"MatchExpressions":[{"ScopeName":"PriorityClass","Operator":"Exists","Values":null}]}: '
                "unsupported scope applied to resource"
            ],
        ),
    ],
)
def test_contradictory_scopes_are_rejected(spec: Json, refused: list[str]) -> None:
    assert refusals(RESOURCE_QUOTAS, spec) == refused


def test_scopes_are_immutable_except_for_the_order() -> None:
    old = quota({"pods": "1"}, scopes=["Terminating", "NotBestEffort"])
    assert update_refusals(RESOURCE_QUOTAS, quota({"pods": "2"}, scopes=["NotBestEffort", "Terminating"]), old) == []
    assert update_refusals(RESOURCE_QUOTAS, quota({"pods": "2"}), old) == [
        "spec.scopes: Invalid value: null: field is immutable"
    ]


def test_requests_above_limits_yield_a_warning() -> None:
    made = decoded(
        RESOURCE_QUOTAS, quota({"cpu": "3", "limits.cpu": "2", "requests.memory": "1", "limits.memory": "1"})
    )
    assert list(RESOURCE_QUOTAS.strategy.warnings_on_create(made)) == [
        "ResourceQuota cpu (3) should be less than limits.cpu (2)"
    ]


def test_status_and_spec_are_written_apart() -> None:
    old = decoded(RESOURCE_QUOTAS, quota({"pods": "1"}, {"hard": {"pods": "1"}}))
    new = decoded(RESOURCE_QUOTAS, quota({"pods": "2"}, {"hard": {"pods": "9"}}))
    ResourceQuotaStatusStrategy().prepare_for_update(new, old)
    assert (new["spec"], new["status"]) == ({"hard": {"pods": "1"}}, {"hard": {"pods": "9"}})


def test_the_table_tells_requests_from_limits() -> None:
    status = {"hard": {"pods": "2", "limits.cpu": "4", "cpu": "1"}, "used": {"pods": "1", "limits.cpu": "500m"}}
    cells = {column.name: column.cell(quota(status=status)) for column in RESOURCE_QUOTAS.columns[:3]}
    assert cells == {"Name": "q", "Request": "cpu: 0/1, pods: 1/2", "Limit": "limits.cpu: 500m/4"}
