"""States of pods, their containers, host ports and resources."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pilothouse.kinds import pods, resources
from pilothouse.machinery.times import format_time

NOW = datetime(2024, 2, 1, 12, tzinfo=UTC)
DELETED = {"deletionTimestamp": "2024-02-01T12:00:00Z"}


def pod(
    phase: str = "Running", *, deleted: bool = False, ready: bool | None = None, since: datetime = NOW
) -> dict[str, Any]:
    conditions = (
        [] if ready is None else [{"type": "Ready", "status": str(ready), "lastTransitionTime": format_time(since)}]
    )
    return {"metadata": DELETED if deleted else {}, "status": {"phase": phase, "conditions": conditions}}


@pytest.mark.parametrize(
    ("phase", "deleted", "ended", "active", "terminating"),
    [
        ("Pending", False, False, True, False),
        ("Running", False, False, True, False),
        ("Running", True, False, False, True),
        ("Succeeded", False, True, False, False),
        ("Failed", True, True, False, False),
    ],
)
def test_pod_states_by_phase_and_deletion(
    phase: str, deleted: bool, ended: bool, active: bool, terminating: bool
) -> None:
    subject = pod(phase, deleted=deleted)
    states = pods.has_ended(subject), pods.is_active(subject), pods.is_terminating(subject)
    assert states == (ended, active, terminating)


def test_pod_without_status_is_active_unbound_and_not_ready() -> None:
    assert pods.is_active({})
    assert not pods.is_ready({})
    assert pods.node_name({}) == ""
    assert pods.phase_of({}) == ""


def test_pod_becomes_available_after_min_ready_seconds() -> None:
    young, old = pod(ready=True, since=NOW - timedelta(seconds=4)), pod(ready=True, since=NOW - timedelta(seconds=20))
    assert [pods.is_available(each, 10, NOW) for each in (young, old, pod(ready=False))] == [False, True, False]
    assert pods.next_availability([young, old], 10, NOW) == 6


def test_transition_time_of_a_pod_condition_moves_only_with_its_status() -> None:
    subject = pod(ready=True, since=NOW)
    pods.set_pod_condition(subject, "Ready", "True", reason="Same")
    (condition,) = subject["status"]["conditions"]
    assert (condition["lastTransitionTime"], condition["reason"]) == (format_time(NOW), "Same")
    pods.set_pod_condition(subject, "Ready", "False")
    (condition,) = subject["status"]["conditions"]
    assert condition["lastTransitionTime"] != format_time(NOW)
    assert "reason" not in condition


def test_host_ports_of_main_containers_and_sidecars_count() -> None:
    port = {"hostPort": 80}
    spec = {
        "initContainers": [
            {"name": "once", "ports": [{"hostPort": 81}]},
            {"name": "sidecar", "restartPolicy": "Always", "ports": [{"hostPort": 53, "protocol": "UDP"}]},
        ],
        "containers": [{"name": "main", "ports": [port, {"containerPort": 8080}]}],
    }
    assert list(pods.host_ports(spec)) == [("TCP", "0.0.0.0", 80), ("UDP", "0.0.0.0", 53)]


@pytest.mark.parametrize(
    ("address", "taken", "conflicts"),
    [
        ("0.0.0.0", [], False),
        ("0.0.0.0", ["10.0.0.1"], True),
        ("10.0.0.1", ["0.0.0.0"], True),
        ("10.0.0.1", ["10.0.0.2"], False),
        ("10.0.0.1", ["10.0.0.1"], True),
    ],
)
def test_wildcard_host_port_conflicts_with_every_address(address: str, taken: str, conflicts: bool) -> None:
    assert pods.host_port_conflicts(address, taken) is conflicts


def test_init_containers_count_beside_the_sidecars_started_before_them() -> None:
    def container(cpu: str, **more: str) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    sidecar = container("1", restartPolicy="Always")
    spec = {"containers": [container("2")], "initContainers": [container("4"), sidecar, container("3")]}
    assert {name: str(amount) for name, amount in resources.aggregate_requests(spec).items()} == {"cpu": "4"}
    spec["initContainers"][2] = container("5")
    assert {name: str(amount) for name, amount in resources.aggregate_requests(spec).items()} == {"cpu": "6"}
