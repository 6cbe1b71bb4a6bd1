"""Which of too many pods go first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pilothouse.client import Json
from pilothouse.controllers.workloads.pod_ranking import deletion_cost, sorted_for_deletion

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def pod(uid: str, *, node: str = "n", phase: str = "Running", ready: str = "2026-01-01T11:00:00Z", **more: Any) -> Json:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    statuses = [{"name": "c", "restartCount": more.get("restarts", 0)}]
    annotations = {"controller.kubernetes.io/pod-deletion-cost": more["cost"]} if "cost" in more else {}
    created = more.get("created", "2026-01-01T10:00:00Z")
    return {
        "metadata": {"uid": uid, "creationTimestamp": created, "annotations": annotations},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": statuses},
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("z", node="", phase="Pending", ready=""), pod("a", phase="Pending", ready="")),
        (pod("z", phase="Pending", ready=""), pod("a", ready="")),
        (pod("z", phase="Unknown", ready=""), pod("a", ready="")),
        (pod("z", ready=""), pod("a")),
        (pod("z", cost="-1"), pod("a")),
        (pod("z", ready="2026-01-01T11:59:00Z"), pod("a")),
        (pod("z", restarts=3), pod("a")),
        (pod("z", created="2026-01-01T11:59:00Z"), pod("a")),
    ],
    ids=["unassigned", "pending", "unknown", "not ready", "cheap", "ready for less", "restarted", "younger"],
)
def test_a_pod_that_would_be_missed_less_goes_first(first: Json, second: Json) -> None:
    assert sorted_for_deletion([second, first], NOW) == [first, second]
    assert sorted_for_deletion([first, second], NOW) == [first, second]


def test_pods_of_similar_age_are_ranked_by_uid() -> None:
    older, younger = pod("a", ready="2026-01-01T11:00:00Z"), pod("b", ready="2026-01-01T11:05:00Z")
    assert sorted_for_deletion([younger, older], NOW) == [older, younger]


def test_a_pod_with_more_company_on_its_node_goes_first() -> None:
    lonely, crowded = pod("a"), pod("b")
    assert sorted_for_deletion([lonely, crowded], NOW, {"a": 1, "b": 2}) == [crowded, lonely]


@pytest.mark.parametrize(
    ("text", "cost"),
    [("5", 5), ("-5", -5), ("+5", 5), ("05", 0), ("many", 0), ("2147483648", 0), ("", 0)],
)
def test_a_deletion_cost_is_a_number_of_32_bits_or_nothing(text: str, cost: int) -> None:
    assert deletion_cost(pod("a", cost=text)) == cost
