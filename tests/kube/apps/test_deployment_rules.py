"""What deployments may say, and when they are a new generation."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.apps.deployments import DEPLOYMENTS, DeploymentStatusStrategy
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.objects import Json

ROLLBACK = "deprecated.deployment.rollback.revision"


def deployment(meta: Json | None = None, **spec: Any) -> Json:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"metadata": meta or {}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}}


def rolling(**limits: Any) -> Json:
    return deployment(strategy={"type": "RollingUpdate", "rollingUpdate": limits})


def stored(obj: Json, **status: Any) -> Json:
    made = decoded(DEPLOYMENTS, obj)
    DEPLOYMENTS.strategy.prepare_for_create(made)
    made["status"] |= status
    return made


def test_a_deployment_rolls_by_a_quarter_unless_it_says_otherwise() -> None:
    spec = decoded(DEPLOYMENTS, deployment())["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)


def test_defaults_leave_what_is_set_alone() -> None:
    sent = rolling(maxSurge=2)
    sent["spec"] |= {"replicas": 0, "revisionHistoryLimit": 0, "progressDeadlineSeconds": 1}
    once = decoded(DEPLOYMENTS, sent)
    assert decoded(DEPLOYMENTS, once) == once
    assert once["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 2, "maxUnavailable": "25%"}
    assert once["spec"]["replicas"] == 0


@pytest.mark.parametrize(
    ("limits", "errors"),
    [
        ({"maxSurge": 1, "maxUnavailable": 0}, []),
        ({"maxSurge": "200%", "maxUnavailable": "100%"}, []),
        (
            {"maxSurge": "0%", "maxUnavailable": 0},
            ["maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"],
        ),
        ({"maxUnavailable": "101%"}, ['maxUnavailable: Invalid value: "101%": must not be greater than 100%']),
        ({"maxSurge": -1}, ["maxSurge: Invalid value: -1: must be greater than or equal to 0"]),
        (
            {"maxSurge": "x"},
            [
                'maxSurge: Invalid value: "x": a valid percent string must be a numeric string followed by an ending '
                "'%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            ],
        ),
    ],
)
def test_the_limits_of_a_rolling_update(limits: Json, errors: list[str]) -> None:
    assert refusals(DEPLOYMENTS, rolling(**limits)) == [f"spec.strategy.rollingUpdate.{error}" for error in errors]


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        (
            {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
            ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
        ),
        (
            {"strategy": {"type": "Odd"}},
            [
                'spec.strategy: Unsupported value: {"Type":"Odd","RollingUpdate":null}: '
                'supported values: "Recreate", "RollingUpdate"'
            ],
        ),
        ({"replicas": -1}, ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]),
        (
            {"minReadySeconds": 600},
            ["spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"],
        ),
        ({"selector": {}}, ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]),
        (
            {"selector": {"matchLabels": {"a": "c"}}},
            ['spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`'],
        ),
        (
            {"selector": {"matchExpressions": [{"operator": "Odd", "key": "a"}], "matchLabels": {"a": "b"}}},
            [
                'spec.selector.matchExpressions[0].operator: Invalid value: "Odd": not a valid selector operator',
                'spec.selector: Invalid value: {"matchLabels":{"a":"b"},"matchExpressions":'
                '[{"key":"a","operator":"Odd"}]}: invalid label selector',
            ],
        ),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(spec: Json, errors: list[str]) -> None:
    assert refusals(DEPLOYMENTS, deployment(**spec)) == errors


def test_the_pods_of_a_deployment_run_for_ever() -> None:
    sent = deployment()
    sent["spec"]["template"]["spec"] |= {"restartPolicy": "Never", "activeDeadlineSeconds": 5}
    assert refusals(DEPLOYMENTS, sent) == [
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
    ]


def test_a_selector_never_changes() -> None:
    changed = deployment(selector={"matchExpressions": [{"key": "a", "operator": "Exists"}]})
    assert update_refusals(DEPLOYMENTS, changed, deployment()) == [
        'spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Exists"}]}: field is immutable'
    ]


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        (deployment(), 1),
        (deployment({"labels": {"x": "y"}}), 1),
        (deployment({"annotations": {"x": "y"}}), 2),
        (deployment(replicas=2), 2),
    ],
)
def test_specs_and_annotations_make_generations(change: Json, generation: int) -> None:
    old, new = stored(deployment()), decoded(DEPLOYMENTS, change)
    new["metadata"]["generation"] = old["metadata"]["generation"]
    DEPLOYMENTS.strategy.prepare_for_update(new, old)
    assert new["metadata"]["generation"] == generation


def test_the_status_of_a_new_deployment_is_empty_and_an_update_cannot_touch_it() -> None:
    old = stored({**deployment(), "status": {"replicas": 9}}, replicas=3)
    assert old["status"] == {"replicas": 3}
    new = decoded(DEPLOYMENTS, {**deployment(), "status": {"replicas": 7}})
    DEPLOYMENTS.strategy.prepare_for_update(new, old)
    assert new["status"] == {"replicas": 3}


def test_a_status_update_leaves_spec_and_labels_alone() -> None:
    old = stored(deployment({"labels": {"x": "y"}}))
    new = decoded(DEPLOYMENTS, {**deployment({"labels": {"x": "z"}}, replicas=5), "status": {"replicas": 1}})
    DeploymentStatusStrategy().prepare_for_update(new, old)
    assert (new["spec"], new["metadata"]["labels"]) == (old["spec"], {"x": "y"})
    assert new["status"] == {"replicas": 1}


@pytest.mark.parametrize(
    ("status", "before", "errors"),
    [
        ({"replicas": 2, "readyReplicas": 2, "availableReplicas": 1}, {}, []),
        ({"updatedReplicas": 1}, {}, ["updatedReplicas: Invalid value: 1: cannot be greater than status.replicas"]),
        (
            {"replicas": 3, "availableReplicas": 2},
            {},
            ["availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"],
        ),
        (
            {"terminatingReplicas": -1},
            {},
            ["terminatingReplicas: Invalid value: -1: must be greater than or equal to 0"],
        ),
        ({}, {"collisionCount": 1}, ["collisionCount: Invalid value: 0: cannot be decremented"]),
        ({"collisionCount": 2}, {"collisionCount": 1}, []),
    ],
)
def test_the_counts_in_a_status_fit_together(status: Json, before: Json, errors: list[str]) -> None:
    new, old = stored(deployment(), **status), stored(deployment(), **before)
    for obj in (new, old):
        obj["metadata"]["resourceVersion"] = "1"
    found = map(str, DeploymentStatusStrategy().validate_update(new, old))
    assert list(found) == [f"status.{error}" for error in errors]


@pytest.mark.parametrize(("sent", "kept"), [("007", {ROLLBACK: "7"}), ("", None), ("0", {ROLLBACK: "0"})])
def test_the_rollback_annotation_is_a_number_or_nothing(sent: str, kept: dict[str, str] | None) -> None:
    made = decoded(DEPLOYMENTS, deployment({"annotations": {ROLLBACK: sent}}))
    assert made["metadata"].get("annotations") == kept


def test_a_rollback_annotation_that_is_no_number_cannot_be_read() -> None:
    with pytest.raises(BadRequest, match="=x as int64: strconv"):
        decoded(DEPLOYMENTS, deployment({"annotations": {ROLLBACK: "x"}}))
    errors = refusals(DEPLOYMENTS, deployment({"annotations": {ROLLBACK: "-1"}}))
    assert errors == ["spec.rollback.version: Invalid value: -1: must be greater than or equal to 0"]


def test_the_rollback_annotation_is_a_part_of_the_spec() -> None:
    old = stored(deployment({"annotations": {ROLLBACK: "1"}}))
    new = decoded(DEPLOYMENTS, deployment({"annotations": {ROLLBACK: "2", "x": "y"}}))
    DeploymentStatusStrategy().prepare_for_update(new, old)
    assert new["metadata"]["annotations"] == {ROLLBACK: "1", "x": "y"}
    DeploymentStatusStrategy().prepare_for_update(old, stored(deployment()))
    assert "annotations" not in old["metadata"]


def test_users_are_warned_of_names_that_pods_cannot_have() -> None:
    named = stored(deployment({"name": "a.b"}))
    [warning] = DEPLOYMENTS.strategy.warnings_on_create(named)
    assert warning.startswith("metadata.name: this is used in Pod names and hostnames")
    assert warning.endswith("a DNS label is recommended: [must not contain dots]")
