"""Leader election on a real Lease, with the candidates' clock in the test's hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from api_server_fixture import ApiServer

from pilothouse.client.clock import cancelled
from pilothouse.client.config.model import ClientConfig
from pilothouse.client.fake_clock import FakeClock
from pilothouse.client.leaderelection.elector import ElectionTimes, LeaderElector
from pilothouse.client.leaderelection.lease_lock import LeaderElectionRecord, LeaseLock
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect

KEY = "default/lock"


@pytest.fixture
async def leases() -> AsyncIterator[ApiServer]:
    async with ApiServer("/apis/coordination.k8s.io/v1", "leases", "Lease").run() as running:
        yield running


@pytest.fixture
async def lease_client(leases: ApiServer) -> AsyncIterator[Client]:
    async with connect(ClientConfig(host=leases.url, qps=0)) as client:
        yield client


class Candidate:
    def __init__(self, client: Client, identity: str, clock: FakeClock, **options: Any) -> None:
        self.leads = asyncio.Event()
        self.stopped = asyncio.Event()
        self.heard: list[str] = []
        lock = LeaseLock(client, namespace="default", name="lock", identity=identity)
        self.elector = LeaderElector(lock, clock=clock, on_new_leader=self.heard.append, **options)
        self.task = asyncio.ensure_future(self.elector.run(self._lead))

    async def _lead(self) -> None:
        self.leads.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()


def spec(leases: ApiServer) -> dict[str, Any]:
    found: dict[str, Any] = leases.objects[KEY]["spec"]
    return found


async def wait_past(leases: ApiServer, clock: FakeClock, seconds: float, *, timers: int = 1) -> None:
    """Lets time pass in small steps, each after every candidate has come to wait."""
    for _ in range(int(seconds)):
        await clock.wait_for_timers(timers)
        clock.advance(1)


async def test_the_first_candidate_leads_and_keeps_the_lease(leases: ApiServer, lease_client: Client) -> None:
    clock = FakeClock()
    one = Candidate(lease_client, "one", clock)
    await one.leads.wait()
    first = spec(leases)
    assert first["holderIdentity"] == "one"
    assert first["leaseDurationSeconds"] == 15
    assert one.heard == ["one"]
    writes = leases.count("PUT")
    assert writes == 0
    for _ in range(3):
        await clock.wait_for_timer(2)
        clock.advance(2)
    await clock.wait_for_timer(2)
    assert leases.count("PUT") == writes + 4
    assert spec(leases)["acquireTime"] == first["acquireTime"]
    assert spec(leases)["renewTime"] > first["renewTime"]
    assert spec(leases)["leaseTransitions"] == 0
    one.elector.check()
    await cancelled(one.task)


async def test_a_second_candidate_waits_and_takes_over_a_lease_that_is_released(
    leases: ApiServer, lease_client: Client
) -> None:
    clock = FakeClock()
    one = Candidate(lease_client, "one", clock)
    await one.leads.wait()
    two = Candidate(lease_client, "two", clock)
    await leases.wait_for_requests(3)
    await clock.wait_for_timers(2)
    assert not two.leads.is_set()
    assert two.elector.leader == "one"
    await cancelled(one.task)
    assert one.stopped.is_set()
    assert spec(leases)["holderIdentity"] == ""
    await wait_past(leases, clock, 5)
    await two.leads.wait()
    assert spec(leases)["leaseTransitions"] == 1
    assert two.heard[-1] == "two"
    await cancelled(two.task)


async def test_a_lease_whose_holder_died_is_taken_over_only_when_it_has_run_out(
    leases: ApiServer, lease_client: Client
) -> None:
    clock = FakeClock()
    dead = LeaderElectionRecord(holder_identity="dead", lease_duration_seconds=15, renew_time=clock.wall() + 9999)
    await leases.put("lock", spec=dead.to_spec())
    two = Candidate(lease_client, "two", clock)
    await leases.wait_for_requests(1)
    await wait_past(leases, clock, 14)
    await clock.wait_for_timers()
    assert not two.leads.is_set()
    while not two.leads.is_set():
        clock.advance(1)
        await asyncio.sleep(0)
    assert clock.now() >= 15
    assert spec(leases)["leaseTransitions"] == 1
    await cancelled(two.task)


async def test_a_candidate_waits_for_as_long_as_it_sees_the_holder_renew(
    leases: ApiServer, lease_client: Client
) -> None:
    clock = FakeClock()
    held = LeaderElectionRecord(holder_identity="one", lease_duration_seconds=15, renew_time=clock.wall())
    await leases.put("lock", spec=held.to_spec())
    two = Candidate(lease_client, "two", clock)
    for _ in range(60):
        await clock.wait_for_timers()
        assert not two.leads.is_set()
        clock.advance(1)
        await leases.put("lock", spec=replace(held, renew_time=clock.wall()).to_spec())
    await clock.wait_for_timers()
    assert two.elector.leader == "one"
    renewed = clock.now()
    while not two.leads.is_set():
        assert clock.now() < renewed + 30
        await clock.wait_for_timers()
        clock.advance(1)
    assert clock.now() >= renewed + 15 - 5  # it may have last looked one wait of at most 4.4 s before
    await cancelled(two.task)


@pytest.mark.parametrize("seconds", [3600.0, -3600.0, 10 * 365 * 86400.0, -10 * 365 * 86400.0])
async def test_a_wall_clock_that_jumps_takes_no_lease_from_its_holder_and_leaves_none_to_the_dead(
    leases: ApiServer, lease_client: Client, seconds: float
) -> None:
    clock = FakeClock()
    one = Candidate(lease_client, "one", clock, release_on_cancel=False)
    await one.leads.wait()
    two = Candidate(lease_client, "two", clock)
    await wait_past(leases, clock, 5, timers=2)
    clock.set_wall(clock.wall() + seconds)
    await wait_past(leases, clock, 40, timers=2)
    assert one.elector.is_leader
    assert not two.leads.is_set()
    await cancelled(one.task)
    gone = clock.now()
    while not two.leads.is_set():
        assert clock.now() < gone + 30
        await clock.wait_for_timers()
        clock.advance(1)
    await cancelled(two.task)


async def test_a_leader_that_renews_is_healthy_for_longer_than_a_lease_lasts(
    leases: ApiServer, lease_client: Client
) -> None:
    clock = FakeClock()
    one = Candidate(lease_client, "one", clock)
    for _ in range(20):
        await clock.wait_for_timer(2)
        clock.advance(2)
    await clock.wait_for_timer(2)
    assert clock.now() == 40
    one.elector.check()
    # A renewal is a single write: the lease is read only when a write failed.
    assert leases.count("GET") == 1
    await cancelled(one.task)


async def test_a_leader_whose_lease_another_one_took_stops(leases: ApiServer, lease_client: Client) -> None:
    clock = FakeClock()
    one = Candidate(lease_client, "one", clock)
    await one.leads.wait()
    taken = LeaderElectionRecord(holder_identity="two", lease_duration_seconds=15, renew_time=clock.wall())
    await leases.put("lock", spec=taken.to_spec())
    for _ in range(5):
        await clock.wait_for_timer(2)
        clock.advance(2)
    await one.task
    assert one.stopped.is_set()
    assert one.heard == ["one", "two"]
    assert spec(leases)["holderIdentity"] == "two"


async def test_a_leader_that_can_not_renew_stops_before_its_lease_runs_out(
    leases: ApiServer, lease_client: Client
) -> None:
    clock = FakeClock()
    one = Candidate(lease_client, "one", clock)
    await one.leads.wait()
    led_from = clock.now()
    for _ in range(100):
        leases.faults.fail(500)
    for _ in range(5):
        await clock.wait_for_timer(2)
        assert not one.stopped.is_set()
        clock.advance(2)
    await one.task
    assert one.stopped.is_set()
    assert clock.now() - led_from == 10


async def test_a_leader_whose_request_hangs_stops_all_the_same(
    leases: ApiServer, lease_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    one = Candidate(lease_client, "one", clock, release_on_cancel=False)
    await clock.wait_for_timer(2)
    hanging = asyncio.Event()

    async def hang(record: LeaderElectionRecord) -> None:
        hanging.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(one.elector._lock, "update", hang)
    clock.advance(2)
    await hanging.wait()
    await clock.wait_for_timer(8)
    clock.advance(8)
    await one.stopped.wait()
    await one.task


async def test_two_candidates_that_race_for_a_new_lease_do_not_both_lead(
    leases: ApiServer, lease_client: Client
) -> None:
    clock = FakeClock()
    both = [Candidate(lease_client, name, clock) for name in ("one", "two")]
    await leases.wait_for_requests(4)
    await asyncio.wait(
        [asyncio.ensure_future(candidate.leads.wait()) for candidate in both], return_when=asyncio.FIRST_COMPLETED
    )
    assert [candidate.leads.is_set() for candidate in both].count(True) == 1
    for candidate in both:
        await cancelled(candidate.task)


async def test_what_the_leader_raises_goes_through_and_the_lease_is_released(
    leases: ApiServer, lease_client: Client
) -> None:
    async def lead() -> None:
        raise RuntimeError("broken")

    lock = LeaseLock(lease_client, namespace="default", name="lock", identity="one")
    with pytest.raises(RuntimeError, match="broken"):
        await LeaderElector(lock, clock=FakeClock()).run(lead)
    assert spec(leases)["holderIdentity"] == ""


async def test_what_else_a_lease_says_is_left_alone(leases: ApiServer, lease_client: Client) -> None:
    await leases.put("lock", spec={"strategy": "OldestEmulationVersion"})
    clock = FakeClock()
    one = Candidate(lease_client, "one", clock)
    await one.leads.wait()
    assert spec(leases)["strategy"] == "OldestEmulationVersion"
    await cancelled(one.task)


async def test_a_leader_that_failed_to_renew_for_too_long_is_not_healthy(
    leases: ApiServer, lease_client: Client
) -> None:
    clock = FakeClock()
    one = Candidate(lease_client, "one", clock)
    await one.leads.wait()
    one.elector._observed_at -= 20
    with pytest.raises(RuntimeError, match="failed election to renew"):
        one.elector.check()
    one.elector.check(tolerance=10)
    await cancelled(one.task)


@pytest.mark.parametrize(
    "times",
    [
        {"lease_duration": 5, "renew_deadline": 10},
        {"renew_deadline": 2, "retry_period": 2},
        {"retry_period": 0},
    ],
)
def test_times_that_can_not_work_are_refused(times: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ElectionTimes(**times)


async def test_a_lock_needs_an_identity_and_a_lease_to_update(lease_client: Client) -> None:
    with pytest.raises(ValueError, match="identity"):
        LeaseLock(lease_client, namespace="default", name="lock", identity="")
    lock = LeaseLock(lease_client, namespace="default", name="lock", identity="x")
    with pytest.raises(RuntimeError, match="not initialized"):
        await lock.update(LeaderElectionRecord())
