"""Event recording: what is written, what is combined, what is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from api_server_fixture import ApiServer

from pilothouse.client.clock import cancelled
from pilothouse.client.config.model import ClientConfig
from pilothouse.client.events.correlator import CorrelatorOptions, EventCorrelator
from pilothouse.client.events.event import NORMAL, WARNING, EventSource, new_event, reference_to
from pilothouse.client.events.recorder import LOG_PERIOD, MAX_QUEUED, EventRecorder
from pilothouse.client.fake_clock import FakeClock
from pilothouse.client.rest.connect import connect
from pilothouse.machinery.objects import Json

SOURCE = EventSource("tester", "here")
POD: Json = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7"},
}


@asynccontextmanager
async def recording(clock: FakeClock, **options: CorrelatorOptions) -> AsyncIterator[tuple[ApiServer, EventRecorder]]:
    async with (
        ApiServer("/api/v1", "events", "Event").run() as server,
        connect(ClientConfig(host=server.url)) as client,
    ):
        recorder = EventRecorder(client, SOURCE, clock=clock, **options)
        task = asyncio.ensure_future(recorder.run())
        yield server, recorder
        await cancelled(task)


def event(message: str, *, reason: str = "Because", clock: FakeClock, pod: Json = POD) -> Json:
    made = new_event(reference_to(pod), SOURCE, type_=NORMAL, reason=reason, message=message, now=clock.wall())
    clock.advance(0.001)
    return made


async def test_an_event_says_what_about_whom_and_from_where() -> None:
    clock = FakeClock()
    async with recording(clock) as (server, recorder):
        recorder.event(POD, WARNING, "Because", "it is so", note="x")
        await recorder.flush()
    (written,) = server.objects.values()
    assert written["involvedObject"] == {
        "kind": "Pod",
        "namespace": "n",
        "name": "p",
        "uid": "u",
        "apiVersion": "v1",
        "resourceVersion": "7",
    }
    assert (written["type"], written["reason"], written["message"]) == ("Warning", "Because", "it is so")
    assert written["source"] == {"component": "tester", "host": "here"}
    assert written["reportingComponent"] == "tester"
    assert written["count"] == 1
    assert written["metadata"]["namespace"] == "n"
    assert written["metadata"]["annotations"] == {"note": "x"}


async def test_an_event_that_happens_again_is_counted_and_not_created_again() -> None:
    clock = FakeClock()
    async with recording(clock) as (server, recorder):
        for _ in range(3):
            recorder.event(POD, NORMAL, "Again", "and again")
            clock.advance(5)
        await recorder.flush()
    (written,) = server.objects.values()
    assert written["count"] == 3
    assert written["firstTimestamp"] < written["lastTimestamp"]
    assert [method for method, _, _ in server.requests] == ["POST", "PATCH", "PATCH"]


async def test_an_event_that_the_server_lost_is_created_again() -> None:
    clock = FakeClock()
    async with recording(clock) as (server, recorder):
        recorder.event(POD, NORMAL, "Again", "x")
        await recorder.flush()
        server.objects.clear()
        recorder.event(POD, NORMAL, "Again", "x")
        await recorder.flush()
        assert [written["count"] for written in server.objects.values()] == [2]


async def test_a_server_that_is_away_is_tried_again_and_one_that_refuses_is_not() -> None:
    clock = FakeClock()
    async with recording(clock) as (server, recorder):
        await server.stop()
        recorder.event(POD, NORMAL, "Later", "x")
        await clock.wait_for_timers()
        assert (clock.next_timer() or 0) < 10
        await server.start()
        clock.advance(10)
        await recorder.flush()
        assert len(server.objects) == 1
        server.faults.fail(403, reason="Forbidden")
        recorder.event(POD, NORMAL, "Refused", "x")
        await recorder.flush()
        assert len(server.objects) == 1


async def test_recording_never_waits_and_drops_what_is_too_much(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        ApiServer("/api/v1", "events", "Event").run() as server,
        connect(ClientConfig(host=server.url)) as client,
    ):
        clock = FakeClock()
        recorder = EventRecorder(client, SOURCE, clock=clock)
        for number in range(MAX_QUEUED + 3):
            recorder.event(POD, NORMAL, "Much", str(number))
        assert [record.getMessage().partition(",")[2] for record in caplog.records] == [
            " dropped 1, the last was Much about p"
        ]
        clock.advance(LOG_PERIOD)
        recorder.event(POD, NORMAL, "Much", "more")
        assert "dropped 3, the last was Much about p" in caplog.text


async def test_what_is_no_event_is_refused() -> None:
    async with recording(FakeClock()) as (_, recorder):
        with pytest.raises(ValueError, match="unsupported event type"):
            recorder.event(POD, "Odd", "x", "x")
        with pytest.raises(ValueError, match="without kind"):
            recorder.event({"metadata": {"name": "x"}}, NORMAL, "x", "x")


def test_many_different_messages_become_one_event() -> None:
    clock = FakeClock()
    correlator = EventCorrelator(clock, CorrelatorOptions(spam_burst=100))
    found = [correlator.correlate(event(f"message {number}", clock=clock)) for number in range(15)]
    results = [result for result in found if result is not None]
    assert len(results) == 15
    assert all(result.patch is None for result in results[:10])
    assert results[8].event["message"] == "message 8"
    assert results[9].event["message"] == "(combined from similar events): message 9"
    assert results[14].patch == {
        "count": 6,
        "lastTimestamp": results[14].event["lastTimestamp"],
        "message": "(combined from similar events): message 14",
    }
    names = {result.event["metadata"]["name"] for result in results[9:]}
    assert len(names) == 1


def test_messages_that_come_slowly_are_not_combined() -> None:
    clock = FakeClock()
    correlator = EventCorrelator(clock, CorrelatorOptions(spam_burst=100))
    for number in range(15):
        result = correlator.correlate(event(f"message {number}", clock=clock))
        assert result is not None
        assert not result.event["message"].startswith("(combined")
        clock.advance(601)


def test_one_object_gets_a_burst_and_then_one_event_in_five_minutes_and_others_are_not_held_back() -> None:
    clock = FakeClock()
    correlator = EventCorrelator(clock)

    def passes(pod: Json = POD) -> bool:
        return correlator.correlate(event("same", clock=clock, pod=pod)) is not None

    assert [passes() for _ in range(27)].count(True) == 25
    assert passes({**POD, "metadata": {**POD["metadata"], "name": "other"}})
    clock.advance(300)
    assert passes()
    assert not passes()


def test_the_correlator_forgets_what_it_has_not_seen_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pilothouse.client.events.correlator.CACHE_SIZE", 2)
    clock = FakeClock()
    correlator = EventCorrelator(clock)
    for message in ("a", "b", "c"):
        correlator.correlate(event(message, clock=clock))
    again, known = (correlator.correlate(event(message, clock=clock)) for message in ("a", "c"))
    assert again is not None
    assert again.patch is None
    assert known is not None
    assert known.patch is not None
