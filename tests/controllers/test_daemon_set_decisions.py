"""The rules of DaemonSets that need no server: where pods go, which are replaced next, how long failed ones wait."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pilothouse.client.fake_clock import FakeClock
from pilothouse.controllers.daemon.controller import FailedPodsBackoff
from pilothouse.controllers.daemon.node_fit import Fit, NodeFit, target_node, template_on_node
from pilothouse.controllers.daemon.placement import Plan, plan_placement
from pilothouse.controllers.daemon.update import plan_update
from pilothouse.controllers.daemon.view import DaemonView, by_node, count, max_surge, max_unavailable
from pilothouse.machinery.objects import Json, name_of

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
RUNS, STAYS, NEVER = Fit(True, True), Fit(False, True), Fit(False, False)


def daemon_set(*, surge: int | str = 0, unavailable: int | str = 0, **pods: Any) -> Json:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    return {"metadata": {"name": "d", "uid": "u"}, "spec": {"template": {"spec": pods}, "updateStrategy": strategy}}


def pod(name: str, node: str, *, new: bool = False, ready: bool = True, **fields: Any) -> Json:
    meta = {"name": name, "namespace": "x", "labels": {"controller-revision-hash": "new" if new else "old"}}
    ended = {"deletionTimestamp": "2026-05-01T12:00:00Z"} if fields.pop("going", False) else {}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}], **fields}
    return {"metadata": {**meta, **ended}, "spec": {"nodeName": node}, "status": status}


def view(owner: Json, fits: dict[str, Fit], *pods: Json) -> DaemonView:
    return DaemonView(owner, "new", fits, by_node(pods), NOW)


def names(plan: Plan) -> tuple[list[str], list[str]]:
    """The nodes that get a pod, and the pods that go."""
    return plan.nodes, [name_of(each) for each in plan.pods]


def placed(owner: Json, fits: dict[str, Fit], *pods: Json) -> tuple[list[str], list[str]]:
    return names(plan_placement(view(owner, fits, *pods), lambda node: True))


def test_pods_are_created_on_eligible_nodes_and_deleted_from_ineligible_nodes() -> None:
    fits = {"a": RUNS, "b": STAYS, "c": NEVER, "d": RUNS}
    assert placed(daemon_set(), fits, pod("b", "b"), pod("c", "c"), pod("d", "d")) == (["a"], ["c"])


def test_of_several_pods_on_a_node_the_oldest_that_is_scheduled_stays() -> None:
    waiting = pod("a", "")
    waiting["spec"] = template_on_node({"spec": {}}, "n")["spec"]
    assert target_node(waiting) == "n"
    assert placed(daemon_set(), {"n": RUNS}, waiting, pod("c", "n"), pod("b", "n")) == ([], ["c", "a"])


def test_ended_pods_are_deleted_and_failed_pods_wait_for_back_off() -> None:
    failed, succeeded = pod("f", "a", phase="Failed"), pod("s", "b", phase="Succeeded")
    known = view(daemon_set(), {"a": RUNS, "b": RUNS}, failed, succeeded)
    assert names(plan_placement(known, lambda node: False)) == ([], ["s"])
    plan = plan_placement(known, lambda node: True)
    assert names(plan) == ([], ["f", "s"])
    assert [reason for _, reason, _ in plan.events] == ["FailedDaemonPod", "SucceededDaemonPod"]


def test_a_pod_that_waits_for_a_node_that_is_gone_is_deleted() -> None:
    waiting = {**pod("w", ""), "spec": template_on_node({"spec": {}}, "gone")["spec"]}
    assert placed(daemon_set(), {}, waiting, pod("r", "gone")) == ([], ["w"])


def test_in_a_surge_the_old_pod_stays_until_the_new_one_is_available_or_it_is_not_ready() -> None:
    owner, fits = daemon_set(surge=1), {"n": RUNS}
    old, waiting = pod("old", "n"), pod("new", "n", new=True, ready=False)
    assert placed(owner, fits, old, waiting) == ([], [])
    assert placed(owner, fits, old, pod("new", "n", new=True)) == ([], ["old"])
    assert placed(owner, fits, pod("old", "n", ready=False), waiting) == ([], ["old"])
    assert placed(owner, fits, pod("old", "n", going=True)) == (["n"], [])


def updated(owner: Json, fits: dict[str, Fit], *pods: Json) -> tuple[list[str], list[str]]:
    return names(plan_update(view(owner, fits, *pods)))


def test_an_update_deletes_unavailable_pods_and_others_up_to_max_unavailable() -> None:
    fits = dict.fromkeys("abcd", RUNS)
    healthy = [pod(node, node) for node in "abc"]
    assert updated(daemon_set(unavailable=1), fits, *healthy, pod("d", "d", ready=False)) == ([], ["d"])
    assert updated(daemon_set(unavailable=2), fits, *healthy, pod("d", "d", ready=False)) == ([], ["d", "a"])
    assert updated(daemon_set(unavailable=1), fits, *healthy) == ([], []), "a node without a pod counts"
    assert updated(daemon_set(unavailable=1), fits, *healthy, pod("d", "d", new=True)) == ([], ["a"])
    assert updated(daemon_set(unavailable=1), fits, *healthy, pod("d", "d", new=True, ready=False)) == ([], [])


def test_a_surge_adds_pods_and_keeps_old_pods_until_new_pods_are_available() -> None:
    owner, fits = daemon_set(surge=1), dict.fromkeys("ab", RUNS)
    assert updated(owner, fits, pod("a", "a"), pod("b", "b")) == (["a"], [])
    assert updated(owner, fits, pod("a", "a"), pod("b", "b", ready=False)) == (["b", "a"], [])
    surged = pod("new", "a", new=True, ready=False)
    assert updated(owner, fits, pod("a", "a"), surged, pod("b", "b")) == ([], [])
    moved = {"a": STAYS, "b": RUNS}
    assert updated(owner, moved, pod("a", "a"), pod("b", "b", new=True, ready=False)) == ([], [])
    assert updated(owner, moved, pod("a", "a"), pod("b", "b", new=True)) == ([], ["a"])


@pytest.mark.parametrize(
    ("surge", "unavailable", "limits"),
    [(0, 0, (0, 1)), ("10%", 0, (1, 0)), (0, "15%", (0, 2)), (3, 0, (3, 0))],
)
def test_percentages_are_rounded_up_and_one_pod_may_always_be_replaced(
    surge: int | str, unavailable: int | str, limits: tuple[int, int]
) -> None:
    owner = daemon_set(surge=surge, unavailable=unavailable)
    assert (max_surge(owner, 10), max_unavailable(owner, 10)) == limits


@pytest.mark.parametrize(
    ("taint", "fit"),
    [
        ({"key": "gpu", "effect": "NoSchedule"}, STAYS),
        ({"key": "gpu", "effect": "NoExecute"}, NEVER),
        ({"key": "gpu", "effect": "PreferNoSchedule"}, RUNS),
        ({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, RUNS),
        ({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}, STAYS),
        ({"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}, STAYS),
    ],
)
def test_taints_decide_where_daemons_run_and_stay(taint: Json, fit: Fit) -> None:
    node = {"metadata": {"name": "n"}, "spec": {"taints": [taint]}}
    assert NodeFit(daemon_set()).of(node) == fit
    assert NodeFit(daemon_set(tolerations=[{"operator": "Exists"}])).of(node) == RUNS
    assert NodeFit(daemon_set(nodeName="other")).of(node) == NEVER
    assert NodeFit(daemon_set(nodeSelector={"zone": "a"})).of(node) == NEVER


def test_the_status_counts_the_oldest_pod_of_each_node() -> None:
    fits = {"a": RUNS, "b": RUNS, "c": STAYS}
    counts = count(view(daemon_set(), fits, pod("a", "a"), pod("n", "a", new=True, ready=False), pod("c", "c")))
    assert counts == {
        "desiredNumberScheduled": 2,
        "currentNumberScheduled": 1,
        "numberMisscheduled": 1,
        "numberReady": 1,
        "updatedNumberScheduled": 0,
        "numberAvailable": 1,
        "numberUnavailable": 1,
    }


async def test_a_failed_pod_waits_twice_as_long_each_time() -> None:
    clock = FakeClock()
    backoff = FailedPodsBackoff(clock)
    for seconds in (1.0, 2.0, 4.0):
        assert backoff.seconds_to_wait("k") is None
        backoff.begin("k")
        assert backoff.seconds_to_wait("k") == seconds
        clock.advance(seconds)
    for _ in range(20):
        backoff.begin("k")
    assert backoff.seconds_to_wait("k") == 900.0
    clock.advance(1801.0)
    backoff.forget_old()
    backoff.begin("k")
    assert backoff.seconds_to_wait("k") == 1.0
