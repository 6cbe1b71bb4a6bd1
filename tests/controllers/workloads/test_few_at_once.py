"""Many requests for one workload, a few at a time."""

from __future__ import annotations

import asyncio
from functools import partial

from pilothouse.controllers.workloads.pod_control import AT_ONCE, few_at_once


async def test_all_is_done_in_order_and_never_too_much_at_once() -> None:
    running, most = 0, 0

    async def double(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        if number == 3:
            raise ValueError("three")
        return 2 * number

    results = await few_at_once([partial(double, number) for number in range(100)])
    assert most == AT_ONCE
    assert str(results.pop(3)) == "three"
    assert results == [2 * number for number in range(100) if number != 3]


async def test_nothing_to_do_is_done() -> None:
    assert await few_at_once([]) == []
