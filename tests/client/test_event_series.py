"""Recording through events.k8s.io/v1: what is said again becomes a series."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from api_server_fixture import ApiServer

from pilothouse.client.clock import cancelled
from pilothouse.client.config.model import ClientConfig
from pilothouse.client.events.event import NORMAL
from pilothouse.client.events.series_recorder import SeriesRecorder
from pilothouse.client.fake_clock import FakeClock
from pilothouse.client.rest.connect import connect
from pilothouse.machinery.objects import Json
from pilothouse.testing import server

POD: Json = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "default", "uid": "u"}}
NODE: Json = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}


@asynccontextmanager
async def recording(clock: FakeClock) -> AsyncIterator[tuple[ApiServer, SeriesRecorder]]:
    async with (
        ApiServer("/apis/events.k8s.io/v1", "events", "Event").run() as events,
        connect(ClientConfig(host=events.url, qps=0)) as client,
    ):
        recorder = SeriesRecorder(client, "tester", instance="tester-1", clock=clock)
        task = asyncio.ensure_future(recorder.run())
        yield events, recorder
        await cancelled(task)


async def say(recorder: SeriesRecorder, times: int = 1) -> None:
    for _ in range(times):
        recorder.event(POD, NORMAL, "Because", "Bind", "it is so", related=NODE)
    await recorder.flush()


async def test_an_event_says_what_was_done_about_whom_and_why() -> None:
    async with recording(FakeClock()) as (events, recorder):
        await say(recorder)
    (written,) = events.objects.values()
    assert written["regarding"] == {"kind": "Pod", "apiVersion": "v1", "namespace": "default", "name": "p", "uid": "u"}
    assert written["related"] == {"kind": "Node", "apiVersion": "v1", "name": "n"}
    said = [written[name] for name in ("type", "reason", "action", "note", "reportingController", "reportingInstance")]
    assert said == ["Normal", "Because", "Bind", "it is so", "tester", "tester-1"]
    assert written["eventTime"] == "2023-11-14T22:13:20.000000Z"
    assert "series" not in written


async def test_what_is_said_again_is_a_series_whose_sum_is_written_when_it_ends() -> None:
    clock = FakeClock()
    async with recording(clock) as (events, recorder):
        await say(recorder, 5)
        (written,) = events.objects.values()
        assert (written["series"]["count"], events.count("PATCH"), events.count("POST")) == (2, 1, 1)
        for _ in range(2):
            await clock.wait_for_timers(2)
            clock.advance(361)
        await events.wait_for_requests(2, matching="PATCH")
        (written,) = events.objects.values()
        assert written["series"]["count"] == 5
        await say(recorder)
    assert len(events.objects) == 2


async def test_a_series_whose_event_is_gone_is_created_again() -> None:
    async with recording(FakeClock()) as (events, recorder):
        await say(recorder)
        events.objects.clear()
        await say(recorder)
    (written,) = events.objects.values()
    assert written["series"]["count"] == 2


async def test_a_real_server_takes_an_event_and_its_series() -> None:
    async with server(controllers="-*") as api, api.client() as client:
        recorder = SeriesRecorder(client, "tester")
        task = asyncio.ensure_future(recorder.run())
        await say(recorder, 2)
        await cancelled(task)
        [event] = (await client.resource("events.k8s.io/v1", "events", namespace="default").list())["items"]
    assert (event["series"]["count"], event["reportingController"]) == (2, "tester")


async def test_a_type_that_is_none_is_refused() -> None:
    async with recording(FakeClock()) as (_, recorder):
        with pytest.raises(ValueError, match="unsupported event type: 'Bad'"):
            recorder.event(POD, "Bad", "r", "a", "n")
