"""What the API shows, as the scheduler takes it."""

from __future__ import annotations

from modelled_cluster import node, pod

from pilothouse.client.fake_clock import FakeClock
from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.framework import Framework
from pilothouse.scheduler.informers import ClusterState
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.queue.scheduling_queue import QueueingHints, SchedulingQueue


class Seen:
    """A scheduler's state that is told of objects."""

    def __init__(self) -> None:
        self.handle, self.clock = Handle(), FakeClock()
        framework = Framework(self.handle)
        self.queue = SchedulingQueue(framework.pre_enqueue, QueueingHints(framework.event_hints()), self.clock)
        state = ClusterState(self.handle, self.queue)
        self.pods, self.nodes = state.pods(), state.nodes()

    def next(self) -> str:
        queued = self.queue.pop()
        return queued.pod.name if queued else ""


async def test_a_pod_without_a_node_waits_and_one_with_a_node_counts() -> None:
    seen = Seen()
    seen.nodes.on_add(node("a"), False)
    seen.pods.on_add(pod("waiting"), False)
    seen.pods.on_add(placed := pod("placed", on="a", requests={"cpu": "1"}), False)
    assert [seen.next(), seen.next()] == ["waiting", ""]
    info = seen.handle.cache.node("a")
    assert info is not None
    assert set(info.pods) == {placed["metadata"]["uid"]}
    assert info.requested == {"cpu": 1000}


async def test_a_pod_that_has_ended_gives_back_what_it_took_and_others_are_tried() -> None:
    seen = Seen()
    seen.nodes.on_add(node("a"), False)
    seen.pods.on_add(old := pod("old", on="a", requests={"cpu": "4"}), False)
    seen.pods.on_add(pod("waiting", requests={"cpu": "4"}), False)
    rejected = seen.queue.pop()
    assert rejected is not None
    seen.queue.add_rejected(rejected, ["NodeResourcesFit"])
    seen.clock.advance(1)
    assert seen.next() == ""
    seen.pods.on_update(old, {**old, "status": {"phase": "Succeeded"}})
    info = seen.handle.cache.node("a")
    assert info is not None
    assert not info.pods
    assert seen.next() == "waiting"


async def test_a_pod_that_was_bound_waits_no_longer() -> None:
    seen = Seen()
    seen.pods.on_add(waiting := pod("web"), False)
    bound: Json = {**waiting, "spec": {**waiting["spec"], "nodeName": "a"}}
    seen.pods.on_update(waiting, bound)
    assert seen.next() == ""
    assert seen.handle.cache.pod(waiting["metadata"]["uid"]) is not None


async def test_an_assumed_pod_is_confirmed_when_it_is_shown_on_its_node() -> None:
    seen = Seen()
    seen.nodes.on_add(node("a"), False)
    seen.pods.on_add(waiting := pod("web"), False)
    info = PodInfo(waiting).on_node("a")
    seen.handle.cache.assume(info)
    assert seen.handle.cache.is_assumed(info.uid)
    seen.pods.on_update(waiting, info.pod)
    assert not seen.handle.cache.is_assumed(info.uid)


async def test_another_pod_of_the_same_name_is_another_pod() -> None:
    seen = Seen()
    seen.nodes.on_add(node("a"), False)
    seen.pods.on_add(first := pod("web", on="a"), False)
    seen.pods.on_update(first, second := pod("web"))
    assert seen.handle.cache.pod(first["metadata"]["uid"]) is None
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert seen.next() == "web"


async def test_a_heartbeat_changes_nothing_that_was_found_out_about_a_node() -> None:
    seen = Seen()
    seen.nodes.on_add(old := node("a"), False)
    info = seen.handle.cache.node("a")
    assert info is not None
    info.remember("question", 1)
    beat: Json = {**old, "metadata": {**old["metadata"], "resourceVersion": "2"}}
    seen.nodes.on_update(old, beat)
    assert info.memo == {"question": 1}
    assert info.node is beat
    seen.nodes.on_update(beat, node("a", cpu="8"))
    assert info.memo == {}
    assert info.allocatable["cpu"] == 8000
