"""How fast an autoscaler may change replicas."""

from __future__ import annotations

import pytest

from pilothouse.client import Json
from pilothouse.controllers.podautoscaler.limits import History, Wish, limit, scale_down_limit, scale_up_limit

WINDOW = 300.0


def behavior(up: Json | None = None, down: Json | None = None) -> Json:
    """With what the API server fills in."""
    percent, pods = _policy("Percent", 100, 15), _policy("Pods", 4, 15)
    fast: Json = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [percent, pods]}
    slow: Json = {"selectPolicy": "Max", "policies": [percent]}
    return {"scaleUp": fast | (up or {}), "scaleDown": slow | (down or {})}


def _policy(type_: str, value: int, period: int) -> Json:
    return {"type": type_, "value": value, "periodSeconds": period}


def decide(current: int, desired: int, history: History, now: float, given: Json | None = None) -> tuple[int, str, str]:
    found = limit(Wish(current=current, desired=desired, least=2, most=50), given, history, WINDOW, now)
    able, limited = found.conditions
    return found.replicas, able.reason, limited.reason


def begun(replicas: int) -> History:
    history = History()
    history.begin(replicas, 0.0)
    return history


@pytest.mark.parametrize(
    ("current", "desired", "expected"),
    [
        (5, 7, (7, "ReadyForNewScale", "DesiredWithinRange")),
        (5, 30, (10, "ReadyForNewScale", "ScaleUpLimit")),
        (1, 30, (4, "ReadyForNewScale", "ScaleUpLimit")),
        (40, 70, (50, "ReadyForNewScale", "TooManyReplicas")),
        (5, 1, (2, "ReadyForNewScale", "TooFewReplicas")),
    ],
)
def test_without_a_behaviour(current: int, desired: int, expected: tuple[int, str, str]) -> None:
    assert decide(current, desired, History(), 0.0) == expected


def test_the_stabilization_window_keeps_the_highest_recommendation() -> None:
    history = begun(8)
    assert decide(8, 3, history, 10) == (8, "ScaleDownStabilized", "DesiredWithinRange")
    assert decide(8, 5, history, 200) == (8, "ScaleDownStabilized", "DesiredWithinRange")
    assert decide(8, 3, history, 301) == (5, "ScaleDownStabilized", "DesiredWithinRange")
    assert decide(5, 3, history, 600) == (3, "ReadyForNewScale", "DesiredWithinRange")


def test_a_behaviour_has_windows_of_its_own() -> None:
    given = behavior({"stabilizationWindowSeconds": 60}, {"stabilizationWindowSeconds": 0})
    history = begun(5)
    assert decide(5, 9, history, 10, given) == (5, "ScaleUpStabilized", "DesiredWithinRange")
    assert decide(5, 8, history, 65, given) == (8, "ReadyForNewScale", "DesiredWithinRange")
    assert decide(8, 3, history, 66, given) == (3, "ReadyForNewScale", "DesiredWithinRange")
    assert decide(8, 3, begun(8), 10, behavior()) == (8, "ScaleDownStabilized", "DesiredWithinRange")


def test_a_policy_limits_the_change_per_period() -> None:
    given = behavior({"policies": [_policy("Pods", 4, 60)]}, {"policies": [_policy("Percent", 10, 60)]})
    history = begun(10)
    assert decide(10, 30, history, 1, given) == (14, "ReadyForNewScale", "ScaleUpLimit")
    history.changed(10, 14, given, 1)
    assert decide(14, 30, history, 30, given) == (14, "ReadyForNewScale", "ScaleUpLimit")
    assert decide(14, 30, history, 62, given) == (18, "ReadyForNewScale", "ScaleUpLimit")
    assert decide(45, 90, begun(45), 1, behavior()) == (50, "ReadyForNewScale", "TooManyReplicas")
    down = behavior(down={"stabilizationWindowSeconds": 0, "policies": [_policy("Percent", 10, 60)]})
    assert decide(20, 3, begun(20), 1, down) == (18, "ReadyForNewScale", "ScaleDownLimit")


@pytest.mark.parametrize(("select", "up", "down"), [("Max", 20, 5), ("Min", 12, 8), ("Disabled", 10, 10)])
def test_which_policy_counts(select: str, up: int, down: int) -> None:
    rising = {"selectPolicy": select, "policies": [_policy("Percent", 100, 60), _policy("Pods", 2, 60)]}
    falling = {"selectPolicy": select, "policies": [_policy("Percent", 50, 60), _policy("Pods", 2, 60)]}
    assert scale_up_limit(10, rising, History(), 0.0) == up
    assert scale_down_limit(10, falling, History(), 0.0) == down


def test_a_small_percentage_still_adds_a_pod() -> None:
    rules = {"policies": [_policy("Percent", 1, 60)]}
    assert scale_up_limit(3, rules, History(), 0.0) == 4
    assert scale_down_limit(3, rules, History(), 0.0) == 2
