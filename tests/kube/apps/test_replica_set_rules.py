"""What replica sets, replication controllers and controller revisions may say."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.apiserver.registry.resource import Resource
from pilothouse.kube.apps.controllerrevisions import CONTROLLER_REVISIONS
from pilothouse.kube.apps.replicasets import REPLICA_SETS, ReplicaSetStatusStrategy
from pilothouse.kube.core.replicationcontrollers import (
    REPLICATION_CONTROLLER_SCALING,
    REPLICATION_CONTROLLERS,
    ReplicationControllerStatusStrategy,
)
from pilothouse.machinery.objects import Json

TEMPLATE: Json = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def replica_set(**spec: Any) -> Json:
    return {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE, **spec}}


def controller(meta: Json | None = None, **spec: Any) -> Json:
    return {"metadata": meta or {}, "spec": {"template": TEMPLATE, **spec}}


def revision(data: Any, number: int = 1) -> Json:
    return {"data": data, "revision": number}


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({}, []),
        ({"replicas": -1}, ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]),
        ({"selector": {}}, ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]),
    ],
)
def test_a_replica_set_that_makes_no_sense_is_refused(spec: Json, errors: list[str]) -> None:
    assert refusals(REPLICA_SETS, replica_set(**spec)) == errors


def test_the_selector_of_a_replica_set_never_changes() -> None:
    changed = replica_set(selector={"matchExpressions": [{"key": "a", "operator": "Exists"}]})
    [error] = update_refusals(REPLICA_SETS, changed, replica_set())
    assert error.startswith("spec.selector: Invalid value: ")
    assert error.endswith(": field is immutable")


def test_a_controller_takes_selector_and_labels_from_its_template() -> None:
    made = decoded(REPLICATION_CONTROLLERS, controller())
    assert made["spec"]["selector"] == made["metadata"]["labels"] == {"a": "b"}
    assert made["spec"]["replicas"] == 1
    own = decoded(REPLICATION_CONTROLLERS, controller({"labels": {"x": "y"}}, selector={"x": "y"}))
    assert own["spec"]["selector"] == own["metadata"]["labels"] == {"x": "y"}


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({"template": None}, ["spec.selector: Required value", "spec.template: Required value"]),
        (
            {"selector": {"a": "c"}},
            ['spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`'],
        ),
        (
            {"minReadySeconds": -1, "replicas": -2},
            [
                "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
                "spec.replicas: Invalid value: -2: must be greater than or equal to 0",
            ],
        ),
    ],
)
def test_a_controller_that_makes_no_sense_is_refused(spec: Json, errors: list[str]) -> None:
    assert refusals(REPLICATION_CONTROLLERS, controller(**spec)) == errors


def test_the_selector_of_a_controller_may_change_unless_an_annotation_forbids_it() -> None:
    labels = {"a": "b", "c": "d"}
    template = TEMPLATE | {"metadata": {"labels": labels}}
    new, old = {"template": template, "selector": labels}, {"template": template, "selector": {"a": "b"}}
    assert update_refusals(REPLICATION_CONTROLLERS, controller(**new), controller(**old)) == []
    fixed = {"annotations": {"non-convertible.kubernetes.io/selector": "x"}}
    assert update_refusals(REPLICATION_CONTROLLERS, controller(fixed, **new), controller(fixed, **old)) == [
        'spec.selector: Invalid value: {"a":"b","c":"d"}: cannot update non-convertible selector'
    ]
    unknown = {"annotations": {"non-convertible.kubernetes.io/other": "x"}}
    assert update_refusals(REPLICATION_CONTROLLERS, controller(unknown), controller(unknown)) == [
        'other: Not found: "x": unknown non-convertible field'
    ]


def test_the_scale_of_a_controller_shows_its_plain_labels() -> None:
    made = decoded(REPLICATION_CONTROLLERS, controller(selector={"b": "1", "a": "2"}, replicas=3))
    scale = REPLICATION_CONTROLLER_SCALING.scale_of(made)
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 0, "selector": "a=2,b=1"})


@pytest.mark.parametrize(
    ("resource", "strategy", "obj"),
    [
        (REPLICA_SETS, ReplicaSetStatusStrategy(), replica_set()),
        (REPLICATION_CONTROLLERS, ReplicationControllerStatusStrategy(), controller()),
    ],
)
def test_the_counts_in_a_status_fit_together(resource: Resource, strategy: Any, obj: Json) -> None:
    made = decoded(resource, {**obj, "status": {"replicas": 1, "fullyLabeledReplicas": 2, "observedGeneration": -1}})
    made["metadata"]["resourceVersion"] = "1"
    assert list(map(str, strategy.validate_update(made, made))) == [
        "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
        "status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas",
    ]


def test_only_controllers_can_be_selected_by_their_replicas() -> None:
    made = decoded(REPLICATION_CONTROLLERS, {**controller(), "status": {"replicas": 1}})
    assert REPLICATION_CONTROLLERS.fields_of(made)["status.replicas"] == "1"
    assert REPLICA_SETS.fields_of(made).keys() == {"metadata.name", "metadata.namespace"}


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        (revision({"any": [1]}), []),
        (revision({}), []),
        (revision(None), ["data: Required value: data is mandatory"]),
        (revision([1]), ["data: Required value: data must be a valid JSON object"]),
        (revision({}, -1), ["revision: Invalid value: -1: must be greater than or equal to 0"]),
    ],
)
def test_a_revision_holds_an_object(obj: Json, errors: list[str]) -> None:
    assert refusals(CONTROLLER_REVISIONS, obj) == errors


def test_the_data_of_a_revision_never_changes_but_its_number_may() -> None:
    assert update_refusals(CONTROLLER_REVISIONS, revision({"a": 1}, 2), revision({"a": 1})) == []
    assert update_refusals(CONTROLLER_REVISIONS, revision({"a": 2}), revision({"a": 1})) == [
        'data: Invalid value: {"a":2}: field is immutable'
    ]
    assert len(update_refusals(CONTROLLER_REVISIONS, revision({"a": None}), revision({"a": []}))) == 1
    assert len(update_refusals(CONTROLLER_REVISIONS, revision({"a": True}), revision({"a": 1}))) == 1


@pytest.mark.parametrize(
    ("owner", "shown"),
    [
        ({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}, "daemonset.apps/d"),
        ({"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}, "pod/p"),
        ({"apiVersion": "v1", "kind": "Pod", "name": "p"}, "<none>"),
    ],
)
def test_a_revision_shows_its_controller(owner: Json, shown: str) -> None:
    obj = {"metadata": {"ownerReferences": [owner]}}
    column = next(column for column in CONTROLLER_REVISIONS.columns if column.name == "Controller")
    assert column.cell(obj) == shown
