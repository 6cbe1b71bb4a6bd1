"""Owners of many pods are not looked at again at once."""

from __future__ import annotations

from pilothouse.client.fake_clock import FakeClock
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.workloads.notifications import Pacing


async def test_an_owner_of_many_pods_rests_after_a_look_and_one_of_few_does_not() -> None:
    clock = FakeClock()
    queue: RateLimitingQueue[str] = RateLimitingQueue("paced", clock=clock)
    pacing = Pacing(queue, clock)
    pacing.looked("few", 10)
    pacing.looked("many", 1000)
    pacing.looked("most", 1_000_000)
    for key in ("few", "many", "most", "many"):
        pacing.add(key)
    assert (len(queue), queue.waiting) == (1, 2)
    clock.advance(0.3)
    assert (len(queue), queue.waiting) == (2, 1)
    clock.advance(0.2)
    assert (len(queue), queue.waiting) == (3, 0)
    pacing.looked("many", 1000)
    pacing.forget("many")
    pacing.add("many")
    assert queue.waiting == 0
    queue.shut_down()
