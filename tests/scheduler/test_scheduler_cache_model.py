"""The cache keeps sums as pods come and go: they are always those that adding everything up would give."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from modelled_cluster import node, pod

from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.cache import Cache
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo

NODES = st.sampled_from(["a", "b", "c"])
PODS = st.integers(0, 5)
SIZES = st.sampled_from(["100m", "1", "2"])
ANTI = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


def made(number: int, on: str, cpu: str, port: bool, apart: bool) -> Json:
    fields: dict[str, Any] = {"requests": {"cpu": cpu}, "ports": [{"hostPort": 80}] if port else []}
    if apart:
        fields["affinity"] = ANTI
    obj = pod(f"p{number}", on=on, **fields)
    obj["metadata"]["uid"] = str(number)
    return obj


class CacheModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.nodes: set[str] = set()
        self.pods: dict[int, PodInfo] = {}
        self.assumed: set[int] = set()

    @rule(name=NODES)
    def a_node_comes_or_changes(self, name: str) -> None:
        self.cache.set_node(node(name))
        self.nodes.add(name)

    @rule(name=NODES)
    def a_node_goes(self, name: str) -> None:
        self.cache.remove_node(name)
        self.nodes.discard(name)

    @rule(number=PODS, on=NODES, cpu=SIZES, port=st.booleans(), apart=st.booleans())
    def a_pod_is_assumed(self, number: int, on: str, cpu: str, port: bool, apart: bool) -> None:
        if number not in self.pods:
            self.pods[number] = PodInfo(made(number, on, cpu, port, apart))
            self.cache.assume(self.pods[number])
            self.assumed.add(number)

    @rule(number=PODS)
    def a_pod_is_forgotten(self, number: int) -> None:
        self.cache.forget(str(number))
        if number in self.assumed:
            self.assumed.discard(number)
            del self.pods[number]

    @rule(number=PODS, on=NODES, cpu=SIZES, port=st.booleans(), apart=st.booleans())
    def a_pod_is_shown(self, number: int, on: str, cpu: str, port: bool, apart: bool) -> None:
        self.pods[number] = PodInfo(made(number, on, cpu, port, apart))
        self.cache.set_pod(self.pods[number])
        self.assumed.discard(number)

    @rule(number=PODS)
    def a_pod_is_gone(self, number: int) -> None:
        self.cache.remove_pod(str(number))
        self.pods.pop(number, None)
        self.assumed.discard(number)

    @invariant()
    def the_sums_are_those_of_the_pods(self) -> None:
        assert {info.name for info in self.cache.nodes} == self.nodes
        for info in self.cache.nodes:
            self.check(info, [each for each in self.pods.values() if each.node_name == info.name])

    @invariant()
    def what_is_kept_by_kind_is_complete(self) -> None:
        apart = {each.node_name for each in self.pods.values() if each.spec.get("affinity")}
        assert set(self.cache.with_required_anti_affinity) == apart & self.nodes
        assert {int(each.uid) for each in self.cache.pods() if self.cache.is_assumed(each.uid)} == self.assumed

    def check(self, info: NodeInfo, pods: list[PodInfo]) -> None:
        assert set(info.pods) == {each.uid for each in pods}
        assert info.requested.get("cpu", 0) == sum(each.requests["cpu"] for each in pods)
        assert info.counted["memory"] == len(pods) * (200 << 20)
        ports = Counter(port for each in pods for port in each.host_ports)
        taken = {(protocol, address, number) for (protocol, number), by in info.ports.items() for address in by}
        assert taken == set(ports)


CacheModel.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestCacheModel = CacheModel.TestCase


def test_an_answer_is_forgotten_when_a_pod_comes() -> None:
    cache = Cache()
    info = cache.set_node(node("a"))
    info.remember("question", 1)
    first = PodInfo(pod(on="a"))
    cache.set_pod(first)
    assert "question" not in info.memo


def test_an_answer_is_kept_when_only_the_status_of_a_pod_changes() -> None:
    cache = Cache()
    info = cache.set_node(node("a"))
    obj = pod(on="a")
    cache.set_pod(PodInfo(obj))
    info.remember("question", 1)
    cache.set_pod(PodInfo({**obj, "status": {"phase": "Running"}}))
    assert info.memo == {"question": 1}
    assert info.pods[obj["metadata"]["uid"]].status == {"phase": "Running"}


def test_nodes_are_looked_at_zone_after_zone() -> None:
    cache = Cache()
    for name, zone in (("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b")):
        cache.set_node(node(name, zone=zone))
    assert [info.name for info in cache.nodes] == ["a1", "b1", "a2", "a3"]
