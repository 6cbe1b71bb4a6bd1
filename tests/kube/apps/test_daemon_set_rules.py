"""What daemon sets may say, and how their templates are counted."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.apps.daemonsets import DAEMON_SETS, TEMPLATE_GENERATION, DaemonSetStatusStrategy
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.objects import Json, annotations_of


def daemon_set(image: str = "i", annotations: Json | None = None, **spec: Any) -> Json:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    meta = {"annotations": annotations or {}}
    return {"metadata": meta, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}}


def created(obj: Json) -> Json:
    made = decoded(DAEMON_SETS, obj)
    DAEMON_SETS.strategy.prepare_for_create(made)
    return made


def updated(obj: Json, old: Json) -> Json:
    made = decoded(DAEMON_SETS, obj)
    made["metadata"]["generation"] = old["metadata"]["generation"]
    DAEMON_SETS.strategy.prepare_for_update(made, old)
    return made


def generations(obj: Json) -> tuple[int, str]:
    return obj["metadata"]["generation"], annotations_of(obj)[TEMPLATE_GENERATION]


def test_a_daemon_set_replaces_one_pod_at_a_time() -> None:
    strategy = decoded(DAEMON_SETS, daemon_set())["spec"]["updateStrategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"rollingUpdate": {}}, {"maxUnavailable": 0, "maxSurge": 0}),
        ({"rollingUpdate": {"maxSurge": "5%"}}, {"maxUnavailable": 0, "maxSurge": "5%"}),
        ({"rollingUpdate": None}, None),
        ({}, None),
    ],
)
def test_limits_of_an_unused_rolling_update_are_zero(sent: Json, kept: Json | None) -> None:
    made = decoded(DAEMON_SETS, daemon_set(updateStrategy={"type": "OnDelete", **sent}))
    assert made["spec"]["updateStrategy"].get("rollingUpdate") == kept


@pytest.mark.parametrize(
    ("sent", "kept"), [({}, "1"), ({TEMPLATE_GENERATION: "07"}, "7"), ({TEMPLATE_GENERATION: "-3"}, "1")]
)
def test_the_first_template_has_a_number(sent: Json, kept: str) -> None:
    assert generations(created(daemon_set(annotations=sent))) == (1, kept)


def test_only_a_new_template_counts_as_one() -> None:
    first = created(daemon_set())
    assert generations(updated(daemon_set(), first)) == (1, "1")
    assert generations(updated(daemon_set(minReadySeconds=1), first)) == (2, "1")
    assert generations(updated(daemon_set("j"), first)) == (2, "2")


def test_clients_cannot_set_the_number_of_the_template() -> None:
    first, forged = created(daemon_set()), daemon_set(annotations={TEMPLATE_GENERATION: "9"})
    assert generations(updated(forged, first)) == (1, "1")
    status = decoded(DAEMON_SETS, forged)
    DaemonSetStatusStrategy().prepare_for_update(status, first)
    assert annotations_of(status) == {TEMPLATE_GENERATION: "1"}


def test_a_number_that_is_none_cannot_be_read() -> None:
    with pytest.raises(BadRequest, match='parsing "x": invalid syntax'):
        decoded(DAEMON_SETS, daemon_set(annotations={TEMPLATE_GENERATION: "x"}))
    with pytest.raises(BadRequest, match="value out of range"):
        decoded(DAEMON_SETS, daemon_set(annotations={TEMPLATE_GENERATION: "9" * 30}))


@pytest.mark.parametrize(
    ("limits", "errors"),
    [
        ({"maxUnavailable": 0, "maxSurge": "10%"}, []),
        ({"maxUnavailable": 0}, ["maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]),
        ({"maxSurge": 1}, ["maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"]),
        (
            {"maxUnavailable": "0%", "maxSurge": "120%"},
            ['maxSurge: Invalid value: "120%": must not be greater than 100%'],
        ),
    ],
)
def test_pods_go_first_or_come_first(limits: Json, errors: list[str]) -> None:
    sent = daemon_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": limits})
    assert refusals(DAEMON_SETS, sent) == [f"spec.updateStrategy.rollingUpdate.{error}" for error in errors]


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"selector": {}}, "selector: Invalid value: {}: empty selector is invalid for daemonset"),
        (
            {"selector": {"matchLabels": {"x": "y"}}},
            'template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
        ),
        (
            {"updateStrategy": {"type": "Odd"}},
            'updateStrategy: Unsupported value: {"Type":"Odd","RollingUpdate":null}: '
            'supported values: "RollingUpdate", "OnDelete"',
        ),
        ({"minReadySeconds": -1}, "minReadySeconds: Invalid value: -1: must be greater than or equal to 0"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(spec: Json, error: str) -> None:
    assert refusals(DAEMON_SETS, daemon_set(**spec)) == [f"spec.{error}"]


def test_a_selector_never_changes() -> None:
    changed = daemon_set(selector={"matchExpressions": [{"key": "a", "operator": "Exists"}]})
    [error] = update_refusals(DAEMON_SETS, changed, daemon_set())
    assert error.endswith(": field is immutable")


def test_the_counts_in_a_status_are_not_negative() -> None:
    obj = created(daemon_set())
    obj["metadata"]["resourceVersion"] = "1"
    obj["status"] |= {"numberReady": -1, "collisionCount": 1}
    before = obj | {"status": {"collisionCount": 2}}
    assert list(map(str, DaemonSetStatusStrategy().validate_update(obj, before))) == [
        "status.numberReady: Invalid value: -1: must be greater than or equal to 0",
        "status.collisionCount: Invalid value: 1: cannot be decremented",
    ]
