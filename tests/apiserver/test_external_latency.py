"""The time of a request that others take is not counted as the server's."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.external_latency import (
    begin_external_latency,
    end_external_latency,
    waited_in_queue,
    webhook_took,
)


async def test_mutating_webhooks_add_up_and_of_validating_ones_the_slowest_counts() -> None:
    async def validating(seconds: float) -> None:
        webhook_took(seconds, mutating=False)

    token, time = begin_external_latency()
    waited_in_queue(1)
    for seconds in (2, 3):
        webhook_took(seconds, mutating=True)
    await asyncio.gather(validating(4), validating(6), validating(5))
    end_external_latency(token)
    assert time.total == 1 + 2 + 3 + 6


def test_a_request_within_a_request_has_its_own_time() -> None:
    outer_token, outer = begin_external_latency()
    inner_token, inner = begin_external_latency()
    waited_in_queue(1)
    end_external_latency(inner_token)
    waited_in_queue(2)
    end_external_latency(outer_token)
    waited_in_queue(4)
    assert (inner.total, outer.total) == (1, 2)
