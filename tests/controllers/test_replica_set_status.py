"""The status of a replica set, without any server."""

from __future__ import annotations

from datetime import UTC, datetime

from pilothouse.client import Json
from pilothouse.controllers.replicaset.replicas import calculated_status, is_up_to_date

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def replica_set(replicas: int = 2, status: Json | None = None, **spec: object) -> Json:
    template = {"metadata": {"labels": {"a": "b", "hash": "1"}}}
    return {
        "metadata": {"name": "s", "generation": 3},
        "spec": {"replicas": replicas, "template": template, **spec},
        "status": status or {"replicas": 0},
    }


def pod(*, ready_since: str = "", **labels: str) -> Json:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready_since}] if ready_since else []
    return {"metadata": {"labels": labels}, "status": {"conditions": conditions}}


def status_of(owner: Json, *pods: Json, terminating: int | None = 0, failure: str | None = None) -> Json:
    return calculated_status(owner, pods, terminating=terminating, failure=failure, now=NOW)


def test_pods_are_counted_by_their_labels_and_readiness() -> None:
    young, old = "2026-05-01T11:59:30Z", "2026-05-01T11:58:00Z"
    pods = (pod(a="b"), pod(a="b", hash="1", ready_since=young), pod(a="b", hash="1", more="x", ready_since=old))
    status = status_of(replica_set(3, minReadySeconds=60), *pods, terminating=2)
    assert status == {
        "replicas": 3,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "terminatingReplicas": 2,
        "observedGeneration": 3,
    }


def test_replica_failure_condition_reports_the_first_failure_until_success() -> None:
    failed = status_of(replica_set(2), failure="no room")
    (condition,) = failed["conditions"]
    assert condition == {
        "type": "ReplicaFailure",
        "status": "True",
        "lastTransitionTime": "2026-05-01T12:00:00Z",
        "reason": "FailedCreate",
        "message": "no room",
    }
    assert status_of(replica_set(2, failed), failure="still no room")["conditions"] == [condition]
    assert "conditions" not in status_of(replica_set(2, failed))
    (condition,) = status_of(replica_set(0), pod(), failure="it stays")["conditions"]
    assert condition["reason"] == "FailedDelete"


def test_a_status_is_written_only_if_it_says_something_else() -> None:
    status = status_of(replica_set(1), pod(a="b", hash="1"))
    assert is_up_to_date(replica_set(1, status), status)
    assert is_up_to_date(replica_set(1, status | {"readyReplicas": 0}), status)
    assert not is_up_to_date(replica_set(1, status | {"observedGeneration": 2}), status)
    assert not is_up_to_date(replica_set(1, status | {"terminatingReplicas": 1}), status)
    assert not is_up_to_date(replica_set(1), status)
