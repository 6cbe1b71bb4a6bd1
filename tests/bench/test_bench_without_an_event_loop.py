"""The test bench, for code without an event loop."""

from __future__ import annotations

from datetime import UTC, datetime

from pilothouse.testing import Server


def test_the_bench_can_be_used_by_calls_that_wait() -> None:
    with Server(testing=True) as api:
        with api.fault(resources=["nodes"], answer=500) as fault:
            assert api.request("GET", "/api/v1/nodes").status == 500
            assert fault.status()["hits"] == 1
        with api.recording(users=["pilothouse-testing"]) as recording:
            assert api.request("GET", "/api/v1/nodes").status == 200
            assert recording.status()["total"] == 1
        api.clock.stop()
        api.clock.set("2040-01-01T00:00:00Z")
        api.clock.step("90s")
        assert api.clock.now() == datetime(2040, 1, 1, 0, 1, 30, tzinfo=UTC)
        api.settle()


def test_restore_takes_faults_away_and_sets_the_clock_back() -> None:
    with Server(testing=True) as api:
        start = api.snapshot()
        api.faults.add(resources=["nodes"], answer=500)
        api.clock.stop()
        api.clock.set("2040-01-01T00:00:00Z")
        api.restore(start)
        assert api.request("GET", "/api/v1/nodes").status == 200
        assert api.clock.now().year < 2040
