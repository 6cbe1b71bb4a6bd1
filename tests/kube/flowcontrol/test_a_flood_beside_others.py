"""A flood from one user: how many of its requests are served while one of another user waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.filters.max_in_flight import with_max_in_flight
from pilothouse.apiserver.filters.priority_and_fairness import FlowControl, with_priority_and_fairness
from pilothouse.apiserver.flowcontrol.controller import FlowController
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.apiserver.streams import close_stream
from pilothouse.kube.flowcontrol.ensurer import SUGGESTED_LEVELS, SUGGESTED_SCHEMAS
from pilothouse.machinery.server_errors import TooManyRequests

CLIENTS = 300
TAKES = 0.0001
INFO = RequestInfo(verb="get", is_resource=True, path="/", version="v1", resource="pods", namespace="default", name="p")


class Clock:
    """Time goes by while requests are served, so that what else the machine does is not counted."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def controller(clock: Clock) -> FlowController:
    made = FlowController(600, begin_at_once=4, now=clock)
    schemas = [{"metadata": {"name": name}, "spec": spec} for name, spec in SUGGESTED_SCHEMAS.items()]
    levels = [{"metadata": {"name": name}, "spec": spec} for name, spec in SUGGESTED_LEVELS.items()]
    made.configure(schemas, levels)
    return made


def request(user: str) -> Request:
    async def nothing(limit: int) -> bytes:
        return b""

    made = Request("GET", "/", "", [], nothing)
    made.info, made.user = INFO, User(user, groups=("system:authenticated",))
    return made


class Served:
    """A handler that, as most do, does all its work in one go."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.count = 0

    async def __call__(self, request: Request) -> Response:
        self.count += 1
        self._clock.at += TAKES
        return Response(200)


async def served_meanwhile(handler: Handler, served: Served) -> list[int]:
    """How many requests were served between the beginning and the end of each of the quiet user's."""
    flooding = True

    async def flood() -> None:
        while flooding:
            with suppress(TooManyRequests):
                await handler(request("flood"))
            await asyncio.sleep(0)  # the answer is sent and the next request read

    tasks = [asyncio.ensure_future(flood()) for _ in range(CLIENTS)]
    await asyncio.sleep(0.01)
    counts = []
    for _ in range(20):
        before = served.count
        await asyncio.ensure_future(handler(request("quiet")))  # as the server does with each request
        counts.append(served.count - before)
        await asyncio.sleep(0.001)
    flooding = False
    await asyncio.gather(*tasks)
    return counts


async def test_with_fair_queuing_a_request_waits_for_a_handful_of_the_floods() -> None:
    clock = Clock()
    served = Served(clock)
    control = FlowControl(controller(clock), lambda _: None, wait_limit=10.0)
    counts = await served_meanwhile(with_priority_and_fairness(control)(served), served)
    assert max(counts) <= 60


async def test_without_it_a_request_waits_for_the_whole_flood() -> None:
    served = Served(Clock())
    counts = await served_meanwhile(with_max_in_flight(10_000, 10_000)(served), served)
    assert max(counts) >= CLIENTS / 2


async def test_a_flood_fills_its_own_queues_and_is_told_to_come_again() -> None:
    held = asyncio.Event()

    async def slow(request: Request) -> Response:
        await held.wait()
        return Response(200)

    control = FlowControl(controller(Clock()), lambda _: None, wait_limit=10.0)
    handler = with_priority_and_fairness(control)(slow)
    tasks = [asyncio.ensure_future(handler(request("flood"))) for _ in range(1000)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    quiet = asyncio.ensure_future(handler(request("quiet")))
    for _ in range(500):
        await asyncio.sleep(0)
    refused = [task for task in tasks if task.done()]
    assert refused
    assert all(isinstance(task.exception(), TooManyRequests) for task in refused)
    held.set()
    assert (await quiet).status == 200
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_the_seats_of_a_stream_are_given_back_even_if_nobody_reads_it() -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"never"

    async def stream(request: Request) -> Response:
        return Response(200, parts())

    made = controller(Clock())
    handler = with_priority_and_fairness(FlowControl(made, lambda _: None, wait_limit=10.0))(stream)
    body = (await handler(request("quiet"))).body
    assert sum(level.queues.seats_in_use for level in made.levels.values()) == 1
    assert not isinstance(body, bytes)
    await close_stream(body)
    assert sum(level.queues.seats_in_use for level in made.levels.values()) == 0
