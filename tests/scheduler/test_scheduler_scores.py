"""Which of several nodes a pod gets."""

from __future__ import annotations

import pytest
from modelled_cluster import HOSTNAME, ZONE, ModelledCluster, node, pod

from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.plugins.node_resources import balanced_allocation, least_allocated, most_allocated

WEB = {"app": "web"}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": WEB}}
ADVICE = [{"key": "k", "effect": "PreferNoSchedule"}]
IMAGE = {"names": ["nginx:latest"], "sizeBytes": 900 << 20}


def towards(kind: str) -> Json:
    return {"affinity": {kind: {PREFERRED: [{"weight": 100, "podAffinityTerm": TERM}]}}}


CASES: list[tuple[str, tuple[Json, ...], Json, str]] = [
    ("the emptier node", (node("a"), node("b"), pod(on="a", requests={"cpu": "2"})), pod(requests={"cpu": "1"}), "b"),
    ("the node without an advice against it", (node("a", taints=ADVICE), node("b")), pod(), "b"),
    ("the node that has its image", (node("a", images=[IMAGE]), node("b")), pod(image="nginx"), "a"),
    (
        "the node with the pods it likes",
        (node("a"), node("b"), pod(on="b", labels=WEB)),
        pod(**towards("podAffinity")),
        "b",
    ),
    (
        "the node without the pods it does not like",
        (node("a"), node("b"), pod(on="b", labels=WEB)),
        pod(**towards("podAntiAffinity")),
        "a",
    ),
    (
        "the node with pods that like it",
        (node("a"), node("b"), pod(on="b", **towards("podAffinity"))),
        pod(labels=WEB),
        "b",
    ),
    (
        "the node that it prefers",
        (node("a"), node("b", labels={"disk": "ssd"})),
        pod(
            affinity={
                "nodeAffinity": {
                    PREFERRED: [
                        {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
                    ]
                }
            }
        ),
        "b",
    ),
    (
        "the zone with fewer of its kind",
        (node("a", zone="1"), node("b", zone="2"), pod(on="a", labels=WEB)),
        pod(
            labels=WEB,
            topologySpreadConstraints=[
                {
                    "topologyKey": ZONE,
                    "maxSkew": 1,
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": WEB},
                }
            ],
        ),
        "b",
    ),
]


@pytest.mark.parametrize(("objects", "wanted", "chosen"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_pod_gets(objects: tuple[Json, ...], wanted: Json, chosen: str) -> None:
    assert ModelledCluster(*objects).choose(wanted) == chosen


def test_pods_of_a_service_are_spread_though_they_say_nothing() -> None:
    cluster = ModelledCluster(node("a"), node("b"), pod(on="a", labels=WEB))
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": WEB}}
    cluster.handle.listers.services.add(service)
    assert cluster.choose(pod(labels=WEB)) == "b"


def test_many_pods_without_requests_are_spread_over_all_nodes() -> None:
    cluster = ModelledCluster(*(node(f"n{number}") for number in range(10)))
    placed = [cluster.place(pod(f"p{number}")) for number in range(40)]
    assert {placed.count(name) for name in placed} == {4}


def test_equal_nodes_are_chosen_by_the_seed() -> None:
    nodes = [node(f"n{number}") for number in range(20)]
    first, second = ModelledCluster(*nodes), ModelledCluster(*nodes)
    wanted = [pod(f"p{number}") for number in range(10)]
    assert [first.place(each) for each in wanted] == [second.place(each) for each in wanted]


def test_scores_by_what_is_left_are_those_of_upstream() -> None:
    info = NodeInfo("a")
    info.set_node(node("a", cpu="4", memory="10000"))
    wanted = PodInfo(pod(requests={"cpu": "3", "memory": "5000"}))
    # cpu: (4000-3000)*100/4000 = 25, memory: (10000-5000)*100/10000 = 50
    assert least_allocated(wanted, info) == 37
    assert most_allocated(wanted, info) == 62
    # with the pod: |0.75-0.5|/2 = 0.125 of deviation, without: none; 50 + (50 + 87 - 100) / 2
    assert balanced_allocation(wanted, info) == 68
