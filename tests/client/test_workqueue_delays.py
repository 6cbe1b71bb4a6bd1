"""Delaying and rate limiting, with a clock that the test moves."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from pilothouse.client.fake_clock import FakeClock
from pilothouse.client.flowcontrol import TokenBucket
from pilothouse.client.workqueue.queue import WorkQueue
from pilothouse.client.workqueue.rate_limiting import (
    BucketRateLimiter,
    DelayingQueue,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimitingQueue,
    WithMaxWaitRateLimiter,
)


async def test_a_delayed_item_arrives_when_its_time_has_come_and_not_before() -> None:
    clock = FakeClock()
    queue: DelayingQueue[str] = DelayingQueue(clock=clock)
    queue.add_after("a", 10)
    clock.advance(9.99)
    assert len(queue) == 0
    clock.advance(0.01)
    assert await queue.get() == "a"
    assert queue.waiting == 0


async def test_an_item_without_a_delay_is_added_at_once() -> None:
    queue: DelayingQueue[str] = DelayingQueue(clock=FakeClock())
    queue.add_after("a", 0)
    assert await queue.get() == "a"


async def test_delayed_items_arrive_in_order_of_their_times() -> None:
    clock = FakeClock()
    queue: DelayingQueue[str] = DelayingQueue(clock=clock)
    for item, delay in (("c", 3), ("a", 1), ("b", 2)):
        queue.add_after(item, delay)
    clock.advance(3)
    assert [await queue.get() for _ in range(3)] == ["a", "b", "c"]


@pytest.mark.parametrize(("first", "second", "due"), [(10, 5, 5), (5, 10, 5)])
async def test_delaying_an_item_again_only_brings_it_forward(first: float, second: float, due: float) -> None:
    clock = FakeClock()
    queue: DelayingQueue[str] = DelayingQueue(clock=clock)
    queue.add_after("a", first)
    queue.add_after("a", second)
    clock.advance(due)
    queue.done(await queue.get())
    clock.advance(100)
    assert len(queue) == 0


async def test_shutting_down_drops_what_still_waits() -> None:
    clock = FakeClock()
    queue: DelayingQueue[str] = DelayingQueue(clock=clock)
    queue.add_after("a", 1)
    queue.shut_down()
    queue.add_after("b", 1)
    clock.advance(5)
    assert len(queue) == 0
    assert clock.timers == 0


async def test_a_failing_item_waits_twice_as_long_each_time_until_it_is_forgotten() -> None:
    clock = FakeClock()
    limiter = ItemExponentialFailureRateLimiter(1, 8)
    queue: RateLimitingQueue[str] = RateLimitingQueue(rate_limiter=limiter, clock=clock)
    for failures, delay in enumerate((1, 2, 4, 8, 8), start=1):
        queue.add_rate_limited("a")
        assert clock.next_timer() == delay
        assert queue.num_requeues("a") == failures
        clock.advance(delay)
        queue.done(await queue.get())
    queue.forget("a")
    assert queue.num_requeues("a") == 0
    assert limiter.when("a") == 1


def test_an_exponential_delay_never_overflows() -> None:
    limiter = ItemExponentialFailureRateLimiter(0.005, 1000)
    assert [limiter.when("a") for _ in range(3000)][-1] == 1000


def test_fast_then_slow() -> None:
    limiter = ItemFastSlowRateLimiter(0.1, 10, 2)
    assert [limiter.when("a") for _ in range(4)] == [0.1, 0.1, 10, 10]
    assert limiter.when("b") == 0.1
    limiter.forget("a")
    assert limiter.when("a") == 0.1


def test_a_bucket_lets_a_burst_through_and_then_spaces_items() -> None:
    clock = FakeClock()
    limiter = BucketRateLimiter(10, 2, clock)
    assert [round(limiter.when("a"), 6) for _ in range(4)] == [0, 0, 0.1, 0.2]
    clock.advance(1)
    assert limiter.when("a") == 0
    assert limiter.num_requeues("a") == 0


def test_the_longest_wait_of_several_limiters_counts_and_all_forget() -> None:
    slow, fast = ItemExponentialFailureRateLimiter(5, 100), ItemFastSlowRateLimiter(1, 50, 1)
    limiter = MaxOfRateLimiter(slow, fast)
    assert [limiter.when("a") for _ in range(3)] == [5, 50, 50]
    assert limiter.num_requeues("a") == 3
    limiter.forget("a")
    assert slow.num_requeues("a") == fast.num_requeues("a") == 0


def test_a_maximum_wait_cuts_off_another_limiter() -> None:
    limiter = WithMaxWaitRateLimiter(ItemExponentialFailureRateLimiter(1, 100), 3)
    assert [limiter.when("a") for _ in range(4)] == [1, 2, 3, 3]
    assert limiter.num_requeues("a") == 4


def test_a_token_bucket_refuses_what_it_cannot_give_now() -> None:
    clock = FakeClock()
    bucket = TokenBucket(1, 1, clock)
    assert bucket.try_accept()
    assert not bucket.try_accept()
    clock.advance(1)
    assert bucket.try_accept()
    with pytest.raises(ValueError, match="positive"):
        TokenBucket(0, 1)


async def test_a_named_queue_reports_upstreams_metrics() -> None:
    clock, registry = FakeClock(), CollectorRegistry()
    queue: RateLimitingQueue[str] = RateLimitingQueue("pods", registry=registry, clock=clock)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"workqueue_{name}", {"name": "pods", **labels})

    queue.add("a")
    queue.add("a")
    queue.add("b")
    clock.advance(2)
    assert await queue.get() == "a"
    clock.advance(3)
    assert value("adds_total") == 2
    assert value("depth") == 1
    assert value("queue_duration_seconds_sum") == 2
    assert value("queue_duration_seconds_bucket", le="1.0") == 0
    assert value("queue_duration_seconds_bucket", le="10.0") == 1
    assert value("unfinished_work_seconds") == value("longest_running_processor_seconds") == 3
    queue.done("a")
    queue.add_rate_limited("a")
    assert value("work_duration_seconds_sum") == 3
    assert value("work_duration_seconds_count") == 1
    assert value("unfinished_work_seconds") == 0
    assert value("retries_total") == 1


async def test_queues_of_one_name_share_their_metrics_and_unnamed_ones_have_none() -> None:
    registry = CollectorRegistry()
    WorkQueue[int]("x", registry=registry).add(1)
    WorkQueue[int]("x", registry=registry).add(2)
    WorkQueue[int](registry=registry).add(3)
    assert registry.get_sample_value("workqueue_adds_total", {"name": "x"}) == 2
    assert registry.get_sample_value("workqueue_adds_total", {"name": ""}) is None
