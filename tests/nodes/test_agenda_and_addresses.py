"""What is due when, who has which address, and how often leases are renewed."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.client import Client, Json, name_of
from pilothouse.client.fake_clock import FakeClock
from pilothouse.client.rest.connect import AsgiTransport
from pilothouse.machinery.errors import Forbidden
from pilothouse.nodes.fleet.addresses import Addresses, NodeRanges, NoMoreAddresses
from pilothouse.nodes.fleet.leases import Leases, interval
from pilothouse.nodes.pods.machine import Step
from pilothouse.nodes.pods.pod_events import PodEvent
from pilothouse.nodes.pods.state import Kill, PodState
from pilothouse.nodes.running.agenda import Agenda
from pilothouse.nodes.running.events import NodeEvents
from pilothouse.nodes.running.steps import InterimStatuses, Record


async def _taken(agenda: Agenda) -> list[str]:
    """All that is due by now."""
    taken = []
    while True:
        try:
            taken.append(await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(agenda.take())), 0.001))
        except TimeoutError:
            return taken


async def test_what_is_due_comes_in_the_order_in_which_it_is() -> None:
    clock = FakeClock()
    agenda, start = Agenda(clock), clock.wall()
    agenda.add("c", start + 3)
    agenda.add("a", start + 1)
    agenda.add("b", start + 2)
    agenda.add("now")
    assert await agenda.take() == "now"
    clock.advance(1.5)
    assert await agenda.take() == "a"
    clock.advance(10)
    assert [await agenda.take(), await agenda.take()] == ["b", "c"]


async def test_the_earliest_time_counts_and_a_key_is_due_once() -> None:
    clock = FakeClock()
    agenda, start = Agenda(clock), clock.wall()
    agenda.add("a", start + 5)
    agenda.add("a", start + 1)
    agenda.add("a", start + 9)
    clock.advance(2)
    assert await _taken(agenda) == ["a"]


async def test_what_is_forgotten_is_not_due() -> None:
    clock = FakeClock()
    agenda = Agenda(clock)
    agenda.add("a", clock.wall() + 1)
    agenda.forget("a")
    clock.advance(5)
    assert await _taken(agenda) == []


async def test_thousands_of_keys_need_one_timer() -> None:
    clock = FakeClock()
    agenda, start = Agenda(clock), clock.wall()
    for number in range(3000):
        agenda.add(str(number), start + 1 + number / 1000)
    assert clock.timers == 1


def test_every_address_is_given_out_once_and_again_when_it_is_free() -> None:
    addresses = Addresses("10.0.0.0/29")
    addresses.mark("10.0.0.3")
    given = [addresses.take() for _ in range(4)]
    assert given == ["10.0.0.2", "10.0.0.4", "10.0.0.5", "10.0.0.6"]
    with pytest.raises(NoMoreAddresses):
        addresses.take()
    addresses.give_back("10.0.0.4")
    addresses.give_back("192.168.0.1")
    assert addresses.take() == "10.0.0.4"


def test_every_node_gets_a_range_of_its_own() -> None:
    ranges = NodeRanges("10.128.0.0/22", 24)
    ranges.mark("10.128.1.0/24")
    assert [ranges.take() for _ in range(3)] == ["10.128.0.0/24", "10.128.2.0/24", "10.128.3.0/24"]
    with pytest.raises(NoMoreAddresses):
        ranges.take()
    ranges.give_back("10.128.2.0/24")
    assert ranges.take() == "10.128.2.0/24"


@pytest.mark.parametrize(("nodes", "seconds"), [(1, 10), (200, 10), (400, 20), (1000, 35)])
def test_many_nodes_renew_their_leases_less_often(nodes: int, seconds: float) -> None:
    assert interval(nodes, 10.0) == seconds


async def _nobody(*unused: object) -> None:
    raise AssertionError("nobody asks")


class _Leases(Leases):
    """Counts instead of writing."""

    def __init__(self, clock: FakeClock, nodes: list[Json]) -> None:
        super().__init__(Client(AsgiTransport(_nobody)), clock, lambda: nodes, 10.0)
        self.count = 0

    async def renew(self, node: Json) -> None:
        self.count += 1
        self._renewed[name_of(node)] = self._clock.now()


async def test_leases_are_renewed_in_turns_and_none_is_late() -> None:
    clock = FakeClock()
    leases = _Leases(clock, [{"metadata": {"name": f"n{number}"}} for number in range(100)])
    await leases.renew_some()
    assert leases.count == 100, "all that are new"
    for _ in range(10):
        clock.advance(1)
        await leases.renew_some()
    assert leases.count < 130, "a few at a time"
    clock.advance(12)
    leases.count = 0
    await leases.renew_some()
    assert leases.count == 100, "a pause makes up for itself at once"


async def test_a_namespace_that_is_about_to_go_is_not_asked_to_take_each_event() -> None:
    asked: list[str] = []
    written: asyncio.Queue[str] = asyncio.Queue()

    class Refusing:
        async def create(self, event: Json) -> Json:
            asked.append(event["metadata"]["namespace"])
            written.put_nowait(event["message"])
            if asked[-1] == "going":
                raise Forbidden("no", details={"causes": [{"reason": "NamespaceTerminating"}]})
            return event

        def namespace(self, name: str) -> Refusing:
            return self

    clock = FakeClock()
    events = NodeEvents(Client(AsgiTransport(_nobody)), clock)
    events._events = Refusing()  # type: ignore[assignment]
    writing = asyncio.ensure_future(events.run())
    for namespace in ("going", "going", "staying", "going"):
        events.record(
            {"metadata": {"name": "p", "namespace": namespace}}, "node", PodEvent("Normal", "Killing", namespace)
        )
    while await written.get() != "staying":
        pass
    clock.advance(1)
    events.record({"metadata": {"name": "p", "namespace": "going"}}, "node", PodEvent("Normal", "Killing", "later"))
    while await written.get() != "later":
        pass
    writing.cancel()
    assert asked == ["going", "staying", "going"]


def test_interim_statuses_are_merged_into_the_next_one_under_load() -> None:
    clock, waiting = FakeClock(), 0
    now = clock.wall()
    interim = InterimStatuses(clock, lambda: waiting)
    new = Record({"metadata": {"name": "a"}}, "node-1", PodState(start_time=now), is_cleared=True)
    soon = Step(new.state, now + 0.05, ())
    shown = 0
    while not interim.merge_with_next(new, soon, now):
        shown += 1
    assert shown == 100
    clock.advance(1)
    assert not interim.merge_with_next(new, soon, now)
    waiting = 1000
    assert interim.merge_with_next(new, soon, now)

    deleted = {"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"startTime": "…"}}
    killed = PodState(start_time=now, kill=Kill(now))
    assert interim.merge_with_next(Record(deleted, "node-1", killed), Step(killed, now + 0.05, ()), now)


def test_statuses_that_last_or_follow_the_first_are_always_written() -> None:
    clock = FakeClock()
    now = clock.wall()
    interim = InterimStatuses(clock, lambda: 1000)
    state = PodState(start_time=now)
    new = Record({"metadata": {"name": "a"}}, "node-1", state, is_cleared=True)
    running = Record({"metadata": {"name": "a"}, "status": {"startTime": "…"}}, "node-1", state, is_cleared=True)
    blocked = Record({"metadata": {"name": "a"}}, "node-1", state)
    assert not interim.merge_with_next(new, Step(state, now + 5, ()), now)
    assert not interim.merge_with_next(new, Step(state, None, ()), now)
    assert not interim.merge_with_next(running, Step(state, now + 0.05, ()), now)
    assert not interim.merge_with_next(blocked, Step(state, now + 0.05, ()), now)
