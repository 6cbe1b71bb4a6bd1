"""The scheduling queue: who is tried next, and who waits for what."""

from __future__ import annotations

import asyncio
from typing import Any

from modelled_cluster import node, pod

from pilothouse.client.fake_clock import FakeClock
from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import NODE_ADDED, POD_DELETED, Action, ClusterEvent, Subject
from pilothouse.scheduler.framework import Framework
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.queue.scheduling_queue import GREATEST_WAIT, QueueingHints, SchedulingQueue

FIT, TAINTS = "NodeResourcesFit", "TaintToleration"


class Queue:
    """The queue with the real plugins' hints."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        framework = Framework(Handle())
        self.queue = SchedulingQueue(framework.pre_enqueue, QueueingHints(framework.event_hints()), self.clock)

    def add(self, name: str, **fields: Any) -> PodInfo:
        info = PodInfo(pod(name, **fields))
        self.queue.add(info)
        return info

    def pop(self) -> str:
        """Return the name of the pod whose turn it is; empty if it is nobody's."""
        queued = self.queue.pop()
        return queued.pod.name if queued else ""

    def reject(self, *plugins: str) -> None:
        """Try the next pod, in vain."""
        queued = self.queue.pop()
        assert queued is not None
        self.queue.add_rejected(queued, plugins)
        self.clock.advance(0.1)


async def test_the_pod_of_greater_priority_is_first_and_then_the_one_that_waited_longer() -> None:
    queue = Queue()
    for name, priority in (("a", 0), ("b", 10), ("c", 0), ("d", 10)):
        queue.add(name, priority=priority)
        queue.clock.advance(1)
    assert [queue.pop() for _ in range(5)] == ["b", "d", "a", "c", ""]


async def test_a_rejected_pod_is_not_tried_again_for_nothing() -> None:
    queue = Queue()
    queue.add("a")
    queue.reject(FIT)
    queue.clock.advance(60)
    assert queue.pop() == ""


async def test_a_change_that_concerns_the_plugin_lets_the_pod_be_tried() -> None:
    queue = Queue()
    queue.add("a")
    queue.reject(FIT)
    queue.queue.move_all(POD_DELETED, pod("other", on="n"))
    assert queue.pop() == "a"


async def test_a_change_that_concerns_another_plugin_does_not() -> None:
    queue = Queue()
    queue.add("a")
    queue.reject(TAINTS)
    queue.queue.move_all(POD_DELETED, pod("other", on="n"))
    assert queue.pop() == ""


async def test_a_node_that_is_too_small_is_no_reason_to_try_again() -> None:
    queue = Queue()
    queue.add("a", requests={"cpu": "8"})
    queue.reject(FIT)
    queue.queue.move_all(NODE_ADDED, None, node("small", cpu="4"))
    assert queue.pop() == ""
    queue.queue.move_all(NODE_ADDED, None, node("large", cpu="16"))
    assert queue.pop() == "a"


async def test_a_node_that_lost_a_taint_is_a_reason() -> None:
    queue = Queue()
    queue.add("a")
    queue.reject(TAINTS)
    tainted = node("n", taints=[{"key": "k", "effect": "NoSchedule"}])
    queue.queue.move_all(ClusterEvent(Subject.NODE, Action.TAINTS), tainted, node("n"))
    assert queue.pop() == "a"


async def test_those_that_were_never_rejected_come_before_those_that_back_off() -> None:
    queue = Queue()
    queue.add("rejected", priority=100)
    queue.reject(FIT)
    queue.queue.move_all(POD_DELETED, pod("other", on="n"))
    queue.add("new")
    assert [queue.pop(), queue.pop()] == ["new", "rejected"]


async def test_a_pod_that_was_rejected_often_is_not_tried_all_the_time() -> None:
    queue = Queue()
    queue.add("a")
    for _ in range(5):
        queue.reject(FIT)
        queue.clock.advance(10)
        queue.queue.move_all(POD_DELETED, pod("other", on="n"))
    queue.reject(FIT)
    queue.queue.move_all(POD_DELETED, pod("other", on="n"))
    assert queue.pop() == ""
    waiting = asyncio.create_task(queue.queue.wait())
    queue.clock.advance(1)
    await waiting
    assert queue.pop() == "a"


async def test_after_an_error_a_pod_waits_longer_each_time() -> None:
    queue = Queue()
    queue.add("a")
    for seconds in (1, 2, 4, 8, 10, 10):
        queue.reject()
        queue.clock.advance(seconds - 0.5)
        assert queue.pop() == ""
        queue.clock.advance(0.4)


async def test_a_gated_pod_is_tried_when_its_gates_are_gone_and_not_before() -> None:
    queue = Queue()
    gated = queue.add("a", schedulingGates=[{"name": "g"}])
    queue.queue.move_all(NODE_ADDED, None, node("n"))
    assert queue.pop() == ""
    assert queue.queue.pending()["gated"] == 1
    free: Json = {**gated.pod, "spec": {**gated.spec, "schedulingGates": []}}
    queue.queue.update(gated, PodInfo(free))
    assert queue.pop() == "a"


async def test_a_pod_that_asks_for_less_is_tried_again() -> None:
    queue = Queue()
    large = queue.add("a", requests={"cpu": "8"})
    queue.reject(FIT)
    small = pod("a", requests={"cpu": "1"})
    small["metadata"] = large.pod["metadata"]
    queue.queue.update(large, PodInfo(small))
    assert queue.pop() == "a"


async def test_a_change_of_status_alone_is_no_reason() -> None:
    queue = Queue()
    waiting = queue.add("a")
    queue.reject(FIT)
    queue.queue.update(waiting, PodInfo({**waiting.pod, "status": {"phase": "Pending"}}))
    assert queue.pop() == ""


async def test_a_deleted_pod_is_never_tried() -> None:
    queue = Queue()
    for name in ("active", "rejected"):
        info = queue.add(name)
        if name == "rejected":
            queue.reject(FIT)
        queue.queue.delete(info.uid)
    queue.queue.move_all(POD_DELETED, pod("other", on="n"))
    assert queue.pop() == ""


async def test_after_five_minutes_a_pod_is_tried_without_a_reason() -> None:
    queue = Queue()
    queue.add("a")
    queue.reject(FIT)
    running = asyncio.create_task(queue.queue.run())
    for _ in range(int(GREATEST_WAIT / 30)):
        await queue.clock.wait_for_timers()
        assert queue.pop() == ""
        queue.clock.advance(30)
        await asyncio.sleep(0)
    await queue.clock.wait_for_timers()
    assert queue.pop() == "a"
    running.cancel()


async def test_whoever_waits_is_woken_by_the_first_pod() -> None:
    queue = Queue()
    waiting = asyncio.create_task(queue.queue.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    queue.add("a")
    await waiting
