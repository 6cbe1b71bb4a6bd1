"""How many replicas use and target ask for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.client import Json
from pilothouse.controllers.config import AutoscalerConfig
from pilothouse.controllers.podautoscaler.pod_metrics import MetricsUnavailable, PodMetric
from pilothouse.controllers.podautoscaler.replica_calculator import (
    MAX_INT32,
    MAX_INT64,
    PodGroups,
    Tolerances,
    Use,
    average_use,
    group_pods,
    replicas_for_pods,
    replicas_for_share,
    replicas_for_total,
    requests_of,
    utilization,
)
from pilothouse.machinery.times import format_time

NOW = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
TENTH = Tolerances(0.1, 0.1)


def values(*amounts: int) -> dict[str, int]:
    return {f"p{number}": amount for number, amount in enumerate(amounts)}


def by_average(current: int, used: Mapping[str, int], groups: PodGroups, target: int) -> int:
    def measure(found: Mapping[str, int]) -> Use:
        return average_use(found, target)

    replicas, _ = replicas_for_pods(
        current, used, groups, measure=measure, should_use=lambda name: target, tolerances=TENTH
    )
    return replicas


@pytest.mark.parametrize(
    ("used", "groups", "target", "replicas"),
    [
        (values(100, 100, 100), PodGroups(ready=3), 100, 3),
        (values(109, 109, 109), PodGroups(ready=3), 100, 3),  # within the tolerance
        (values(120, 120, 120), PodGroups(ready=3), 100, 4),
        (values(10, 10, 10), PodGroups(ready=3), 100, 1),
        (values(300, 300), PodGroups(ready=2, missing={"p2"}), 100, 6),  # who is missing uses nothing
        (values(10, 10), PodGroups(ready=2, missing={"p2"}), 100, 2),  # who is missing uses all it should
        (values(120, 120), PodGroups(ready=2, missing={"p2"}), 100, 3),  # and never turns the change round
        (values(300, 300, 900), PodGroups(ready=2, unready={"p2"}), 100, 6),
        (values(50, 50, 900), PodGroups(ready=2, unready={"p2"}), 100, 1),
        (values(300, 300, 900), PodGroups(ready=2, ignored={"p2"}), 100, 6),
    ],
)
def test_use_against_an_amount_for_each(used: dict[str, int], groups: PodGroups, target: int, replicas: int) -> None:
    assert by_average(3, used, groups, target) == replicas


def test_use_against_a_share_of_requests() -> None:
    use = utilization(values(300, 500, 700), dict.fromkeys(values(0, 0, 0), 1000), 30)
    assert (use.percent, use.average) == (50, 500)
    assert use.ratio == pytest.approx(50 / 30)
    assert utilization({"p0": 100, "other": 1}, {"p0": 200, "p1": 200}, 50).percent == 50
    with pytest.raises(MetricsUnavailable, match="no metrics returned matched known pods"):
        utilization({"other": 1}, {"p0": 200}, 50)


def test_nothing_is_known_of_pods_that_are_all_unready() -> None:
    with pytest.raises(MetricsUnavailable, match="did not receive metrics for targeted pods"):
        by_average(3, values(100), PodGroups(unready={"p0"}), 100)


@pytest.mark.parametrize(
    ("current", "used", "target", "ready", "replicas"),
    [(3, 20, 10, 3, 6), (3, 10, 10, 3, 3), (3, 11, 10, 3, 3), (0, 25, 10, 0, 3), (3, 10**18, 1, 3, MAX_INT32)],
)
def test_replicas_from_total_usage(current: int, used: int, target: int, ready: int, replicas: int) -> None:
    assert replicas_for_total(current, used, target, lambda: ready, TENTH) == replicas


@pytest.mark.parametrize(
    ("current", "used", "target", "expected"),
    [
        (4, 4400, 1000, (4, 1100)),
        (4, 4500, 1000, (5, 1125)),
        (4, 100, 1000, (1, 25)),
        (4, MAX_INT64, 1, (MAX_INT32, MAX_INT64)),
    ],
)
def test_replicas_from_average_usage(current: int, used: int, target: int, expected: tuple[int, int]) -> None:
    assert replicas_for_share(current, used, target, TENTH) == expected


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 5000), min_size=1, max_size=20), st.integers(1, 5000), st.integers(0, 3))
def test_pods_of_which_nothing_is_known_never_turn_a_change_round(used: list[int], target: int, missing: int) -> None:
    current, use = len(used) + missing, average_use(values(*used), target)
    absent = {f"x{number}" for number in range(missing)}
    found = by_average(current, values(*used), PodGroups(ready=len(used), missing=absent), target)
    if use.ratio > 1.0:
        assert found >= current
    elif use.ratio < 1.0:
        assert found <= current


def pod(
    name: str = "p0", phase: str = "Running", *, started: float = 1000, ready: str = "True", since: float = 900
) -> Json:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": ago(since)}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "250m"}}}]},
        "status": {"phase": phase, "startTime": ago(started), "conditions": [condition]},
    }


def ago(seconds: float) -> str:
    return format_time(NOW - timedelta(seconds=seconds))


def group(of: Json, resource: str = "cpu", *, age: float = 5, window: float = 15, known: bool = True) -> str:
    metric = PodMetric(1, NOW - timedelta(seconds=age), window)
    groups = group_pods([of], {"p0": metric} if known else {}, resource, AutoscalerConfig(), NOW)
    named = {"unready": groups.unready, "missing": groups.missing, "ignored": groups.ignored}
    return next((name for name, pods in named.items() if pods), "ready")


def test_pods_are_grouped_by_whether_their_use_says_something() -> None:
    deleted = pod()
    deleted["metadata"]["deletionTimestamp"] = ago(1)
    assert group(pod()) == "ready"
    assert group(deleted) == group(pod(phase="Failed")) == "ignored"
    assert group(pod(phase="Pending")) == "unready"
    assert group(pod(), known=False) == "missing"
    # it started a minute ago: what was measured before it was ready does not count
    assert group(pod(started=60, since=30), age=5) == "ready"
    assert group(pod(started=60, since=10), age=5) == "unready"
    assert group(pod(started=60, since=30, ready="False")) == "unready"
    # it started long ago: it counts unless it has never been ready
    assert group(pod(started=1000, since=990, ready="False")) == "unready"
    assert group(pod(started=1000, since=100, ready="False")) == "ready"
    # only the use of processor time is different at the start
    assert group(pod(started=60, since=30, ready="False"), "memory") == "ready"


def test_requests_come_from_the_pod_or_its_containers() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}}
    of: dict[str, Any] = pod()
    of["spec"]["initContainers"] = [{"name": "i"}, sidecar]
    assert requests_of([of], "cpu") == {"p0": 300}
    assert requests_of([of], "cpu", "s") == {"p0": 50}
    with pytest.raises(MetricsUnavailable, match="missing request for memory in container c of Pod p0"):
        requests_of([of], "memory")
    with pytest.raises(MetricsUnavailable, match="container x not found in Pod p0"):
        requests_of([of], "cpu", "x")
    of["spec"]["resources"] = {"requests": {"cpu": "1"}}
    assert requests_of([of], "cpu") == {"p0": 1000}
    assert requests_of([of], "cpu", "c") == {"p0": 250}
    with pytest.raises(MetricsUnavailable, match="missing pod-level request for memory in Pod p0"):
        requests_of([of], "memory")
