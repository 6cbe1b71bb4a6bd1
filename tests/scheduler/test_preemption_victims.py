"""Preemption: whom to delete, and on which node."""

from __future__ import annotations

from typing import Any

import pytest
from modelled_cluster import ModelledCluster, node, pod

from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.framework import PodFilters
from pilothouse.scheduler.preemption.victims import Victims, find_victims

HALF = {"cpu": "2"}
EARLY, LATE = {"startTime": "2026-01-01T00:00:00Z"}, {"startTime": "2026-01-02T00:00:00Z"}
WEB = {"app": "web"}


def budget(allowed: int, labels: dict[str, str] | None = None) -> Json:
    meta = {"name": "b", "namespace": "default"}
    selector = {"matchLabels": labels or WEB}
    return {"metadata": meta, "spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed}}


def victims_on(name: str, cluster: ModelledCluster, wanted: Json, *budgets: Json) -> Victims | Rejection:
    info, node_info = PodInfo(wanted), cluster.handle.cache.node(name)
    filters = cluster.framework.pre_filter(info)
    assert isinstance(filters, PodFilters)
    assert node_info is not None
    return find_victims(info, node_info, filters, cluster.framework, budgets)


def names(found: Victims | Rejection) -> list[str]:
    assert isinstance(found, Victims)
    return [each.name for each in found.pods]


def full(*pods: Json) -> ModelledCluster:
    return ModelledCluster(node("a", cpu="4"), *pods)


def test_the_least_important_pod_goes_and_the_others_stay() -> None:
    cluster = full(pod("low", on="a", requests=HALF), pod("middle", on="a", requests=HALF, priority=5))
    assert names(victims_on("a", cluster, pod(requests=HALF, priority=10))) == ["low"]


def test_of_two_of_one_priority_the_one_that_started_later_goes() -> None:
    cluster = full(pod("old", on="a", requests=HALF, status=EARLY), pod("new", on="a", requests=HALF, status=LATE))
    assert names(victims_on("a", cluster, pod(requests=HALF, priority=10))) == ["new"]


def test_pods_of_the_same_priority_are_no_victims() -> None:
    cluster = full(pod("same", on="a", requests=HALF, priority=10), pod("b", on="a", requests=HALF, priority=10))
    found = victims_on("a", cluster, pod(requests=HALF, priority=10))
    assert isinstance(found, Rejection)
    assert found.reasons == ("No preemption victims found for incoming pod",)


def test_a_pod_that_would_not_fit_on_the_empty_node_deletes_nobody() -> None:
    cluster = full(pod("low", on="a", requests=HALF))
    found = victims_on("a", cluster, pod(requests={"cpu": "8"}, priority=10))
    assert isinstance(found, Rejection)
    assert found.reasons == ("Insufficient cpu",)


def test_a_pod_whose_budget_allows_nothing_goes_only_if_it_must() -> None:
    cluster = full(pod("kept", on="a", requests=HALF, labels=WEB), pod("free", on="a", requests=HALF, priority=5))
    found = victims_on("a", cluster, pod(requests=HALF, priority=10), budget(0))
    assert names(found) == ["free"]
    found = victims_on("a", cluster, pod(requests={"cpu": "4"}, priority=10), budget(0))
    assert names(found) == ["free", "kept"]
    assert isinstance(found, Victims)
    assert found.broken_budgets == 1


def test_a_pod_that_keeps_others_away_goes() -> None:
    apart = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": WEB}}
        ]
    }
    cluster = full(pod("jealous", on="a", affinity={"podAntiAffinity": apart}), pod("other", on="a"))
    assert names(victims_on("a", cluster, pod(labels=WEB, priority=10))) == ["jealous"]


CRITERIA: list[tuple[str, tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]]] = [
    ("fewer broken budgets", ({"priority": 9},), ({"priority": 1, "labels": WEB},)),
    ("a lesser greatest priority", ({"priority": 1}, {"priority": 1}), ({"priority": 2},)),
    ("a lesser sum of priorities", ({"priority": 5}, {"priority": 1}), ({"priority": 5}, {"priority": 4})),
    ("fewer pods", ({"priority": -1},), ({"priority": -1}, {"priority": -2})),
    ("pods that started later", ({"priority": 1, "status": LATE},), ({"priority": 1, "status": EARLY},)),
]


@pytest.mark.parametrize(("better", "worse"), [case[1:] for case in CRITERIA], ids=[case[0] for case in CRITERIA])
def test_a_node_is_chosen_for(better: tuple[dict[str, Any], ...], worse: tuple[dict[str, Any], ...]) -> None:
    def victims(name: str, kinds: tuple[dict[str, Any], ...]) -> Victims:
        pods = [PodInfo(pod(f"{name}{number}", **fields)) for number, fields in enumerate(kinds)]
        return Victims(name, tuple(pods), sum(each.labels == WEB for each in pods))

    chosen = min((victims("worse", worse), victims("better", better)), key=lambda each: each.cost)
    assert chosen.node_name == "better"


def test_a_nominated_pod_counts_as_if_it_were_there() -> None:
    cluster = full()
    coming = PodInfo(pod("coming", requests={"cpu": "3"}, priority=10))
    cluster.handle.nominator.set(coming, "a")
    assert cluster.why_not(pod("low", requests=HALF)) == "0/1 nodes are available: 1 Insufficient cpu."
    assert cluster.choose(pod("higher", requests=HALF, priority=20)) == "a"
    assert cluster.choose(coming.pod) == "a"
