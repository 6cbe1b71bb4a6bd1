"""Pacing: few requests begin in one turn of the event loop, and those who wait take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from pilothouse.apiserver.flowcontrol.pacing import Line, Pacer

A, B = 1, 2


class Begun:
    """Requests that note when they begin."""

    def __init__(self, limit: int) -> None:
        self._pacer = Pacer(limit)
        self.order: list[str] = []

    async def one(self, name: str, line: Line, flow: int, weight: int = 1) -> None:
        if not self._pacer.begin(flow):
            await self._pacer.wait(line, flow, weight)
        self.order.append(name)

    async def all(self, *requests: Coroutine[Any, Any, None]) -> str:
        await asyncio.gather(*requests)
        return "".join(self.order)


async def test_in_one_turn_no_more_begin_than_are_let_and_the_rest_follow_in_order() -> None:
    begun, line = Begun(2), Line()
    tasks = [asyncio.ensure_future(begun.one(str(number), line, A)) for number in range(10)]
    await asyncio.sleep(0)
    assert len(begun.order) == 2
    await asyncio.gather(*tasks)
    assert "".join(begun.order) == "0123456789"


async def test_flows_of_a_level_take_turns() -> None:
    begun, line = Begun(1), Line()
    flood = [begun.one("a", line, A) for _ in range(8)]
    assert await begun.all(*flood, begun.one("b", line, B), begun.one("b", line, B)) == "aababaaaaa"


async def test_a_flow_of_heavy_requests_has_fewer_turns() -> None:
    begun, line = Begun(1), Line()
    heavy = [begun.one("a", line, A, weight=4) for _ in range(3)]
    assert await begun.all(*heavy, *(begun.one("b", line, B) for _ in range(8))) == "aabbbbabbbb"


async def test_levels_take_turns_however_many_flows_they_have() -> None:
    begun, busy, quiet = Begun(1), Line(), Line()
    crowd = [begun.one("a", busy, flow) for flow in range(8)]
    assert (await begun.all(*crowd, begun.one("b", quiet, A))).index("b") == 2


async def test_whoever_goes_away_takes_no_turn() -> None:
    begun, line = Begun(1), Line()
    tasks = [asyncio.ensure_future(begun.one(str(number), line, A)) for number in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert begun.order == ["0", "3"]


async def test_more_requests_of_a_flow_begin_at_once_when_nobody_else_has_asked_for_a_while() -> None:
    begun, line = Begun(2), Line()
    for _ in range(1001):
        await begun.one("a", line, A)
        await asyncio.sleep(0)
    begun.order.clear()
    tasks = [asyncio.ensure_future(begun.one("a", line, A)) for _ in range(40)]
    await asyncio.sleep(0)
    assert len(begun.order) == 8
    await asyncio.gather(*tasks)
    await begun.one("b", line, B)
    begun.order.clear()
    tasks = [asyncio.ensure_future(begun.one("a", line, A)) for _ in range(40)]
    await asyncio.sleep(0)
    assert len(begun.order) <= 2
    await asyncio.gather(*tasks)
