"""Fair queuing: nobody waits for more than a fair share of the others, and no seat is given twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.apiserver.flowcontrol.levels import SeatClaim, allocate
from pilothouse.apiserver.flowcontrol.queue_set import QueueSet, Queuing, Rejected, Ticket
from pilothouse.apiserver.flowcontrol.shuffle_sharding import deal, flow_hash
from pilothouse.apiserver.flowcontrol.use import DemandStats, SeatDemand

QUEUES = Queuing(queues=8, hand=2, length=50)


class Clock:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def queue_set(limit: int, queuing: Queuing = QUEUES, clock: Clock | None = None) -> QueueSet:
    made = QueueSet(queuing, now=clock or Clock())
    made.configure(queuing, limit=limit)
    return made


async def begin(queues: QueueSet, ticket: Ticket, flow: str, *, timeout: float = 60.0) -> None:
    if not queues.start(ticket):
        await queues.wait(ticket, flow_hash("s", flow), timeout=timeout)


@given(st.integers(min_value=0, max_value=2**64 - 1), st.integers(min_value=1, max_value=128), st.data())
def test_a_hand_has_different_cards_of_the_deck(entropy: int, deck: int, data: st.DataObject) -> None:
    hand = data.draw(st.integers(min_value=1, max_value=min(deck, 8)))
    cards = deal(entropy, deck=deck, hand=hand)
    assert len(set(cards)) == hand
    assert all(0 <= card < deck for card in cards)


def test_hands_are_dealt_evenly() -> None:
    counted = Counter(card for number in range(4000) for card in deal(flow_hash("s", str(number)), deck=16, hand=4))
    assert max(counted.values()) < 1.15 * min(counted.values())


async def test_as_many_run_as_there_are_seats_and_the_next_runs_when_one_is_free() -> None:
    queues = queue_set(limit=2)
    tickets = [Ticket(1) for _ in range(3)]
    for ticket in tickets[:2]:
        assert queues.start(ticket)
    third = asyncio.ensure_future(begin(queues, tickets[2], "a"))
    await asyncio.sleep(0)
    assert not third.done()
    queues.finish(tickets[0])
    await third
    assert queues.seats_in_use == 2


async def test_what_is_wider_than_the_level_runs_alone() -> None:
    queues = queue_set(limit=2)
    narrow, wide = Ticket(1), Ticket(5)
    assert queues.start(narrow)
    waiting = asyncio.ensure_future(begin(queues, wide, "a"))
    await asyncio.sleep(0)
    assert not waiting.done()
    queues.finish(narrow)
    await waiting
    assert queues.seats_in_use == 5


async def test_a_level_without_queues_refuses_what_does_not_fit() -> None:
    queues = queue_set(limit=1, queuing=Queuing(0))
    assert queues.start(Ticket(1))
    with pytest.raises(Rejected, match="concurrency-limit"):
        queues.start(Ticket(1))


async def test_an_exempt_level_refuses_nothing() -> None:
    queues = queue_set(limit=0, queuing=Queuing(-1))
    assert all(queues.start(Ticket(1)) for _ in range(100))


async def test_a_full_queue_refuses() -> None:
    queues = queue_set(limit=1, queuing=Queuing(queues=1, hand=1, length=2))
    assert queues.start(Ticket(1))
    waiting = [asyncio.ensure_future(begin(queues, Ticket(1), "a")) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Rejected, match="queue-full"):
        await begin(queues, Ticket(1), "a")
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert queues.waiting == 0


async def test_who_waits_too_long_is_refused_and_leaves_nothing_behind() -> None:
    queues = queue_set(limit=1)
    assert queues.start(Ticket(1))
    with pytest.raises(Rejected, match="time-out"):
        await begin(queues, Ticket(3), "a", timeout=0.001)
    assert (queues.waiting, queues.seats_waiting, queues.timed_out) == (0, 0, 1)


async def test_a_client_that_goes_away_as_its_turn_comes_gives_its_seat_to_the_next() -> None:
    queues = queue_set(limit=1)
    first, second, third = Ticket(1), Ticket(1), Ticket(1)
    assert queues.start(first)
    going, staying = (asyncio.ensure_future(begin(queues, ticket, "a")) for ticket in (second, third))
    await asyncio.sleep(0)
    queues.finish(first)
    going.cancel()
    await asyncio.gather(going, return_exceptions=True)
    await staying
    assert list(queues.executing) == [third]


async def test_one_request_of_a_quiet_flow_goes_before_the_rest_of_a_flood() -> None:
    clock = Clock()
    queues = queue_set(limit=1, queuing=Queuing(queues=64, hand=6, length=50), clock=clock)
    running = Ticket(1)
    assert queues.start(running)
    order: list[str] = []
    free = asyncio.Queue[Ticket]()

    async def one(flow: str) -> None:
        ticket = Ticket(1)
        await begin(queues, ticket, flow)
        order.append(flow)
        free.put_nowait(ticket)

    tasks = [asyncio.ensure_future(one("flood")) for _ in range(40)]
    await asyncio.sleep(0)
    tasks.append(asyncio.ensure_future(one("quiet")))
    await asyncio.sleep(0)
    free.put_nowait(running)
    for _ in range(42):
        ticket = await free.get()
        clock.at += 0.003
        queues.finish(ticket)
    await asyncio.gather(*tasks)
    # The flood has at most a hand of six queues, each of which may have its turn before the quiet one.
    assert order.index("quiet") <= 6


class TwoFlows:
    """Two flows with a queue each and one seat between them. Whoever has the seat keeps it for as long as it takes."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.clock = Clock()
        self.queues = queue_set(limit=1, queuing=Queuing(queues=2, hand=1, length=1000), clock=self.clock)
        self.order: list[str] = []
        self._seconds = seconds
        self._running: dict[Ticket, str] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def ask(self, flow: str, times: int = 1) -> None:
        entropy = {"a": 0, "b": 1}[flow]
        assert deal(entropy, deck=2, hand=1) == (entropy,)

        async def one() -> None:
            ticket = Ticket(1)
            if not self.queues.start(ticket):
                await self.queues.wait(ticket, entropy, timeout=60.0)
            self.order.append(flow)
            self._running[ticket] = flow

        self._tasks += [asyncio.ensure_future(one()) for _ in range(times)]
        await asyncio.sleep(0)

    async def serve(self, times: int) -> str:
        """The flows of the next requests that run, in their order."""
        first = len(self.order)
        while len(self.order) < first + times:
            ticket, flow = self._running.popitem()
            self.clock.at += self._seconds[flow]
            self.queues.finish(ticket)
            await asyncio.sleep(0)
        return "".join(self.order[first:])

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def test_flows_whose_requests_take_alike_take_turns() -> None:
    flows = TwoFlows({"a": 0.003, "b": 0.003})
    await flows.ask("a", 1)
    await flows.ask("a", 50)
    await flows.ask("b", 50)
    assert (await flows.serve(40)).count("b") in range(18, 23)
    await flows.stop()


async def test_a_flow_with_long_requests_has_fewer_turns() -> None:
    flows = TwoFlows({"a": 0.1, "b": 0.01})
    await flows.ask("a", 1)
    for _ in range(12):  # they go on asking while others of theirs run
        await flows.ask("a", 5)
        await flows.ask("b", 40)
        await flows.serve(4)
    served = await flows.serve(110)
    assert served.count("a") in range(8, 13)
    await flows.stop()


async def test_a_flow_saves_up_nothing_while_it_asks_for_nothing() -> None:
    flows = TwoFlows({"a": 0.003, "b": 0.003})
    await flows.ask("a", 2)
    await flows.ask("b", 1)
    await flows.serve(2)
    await flows.ask("a", 300)
    await flows.serve(200)
    await flows.ask("b", 40)
    assert (await flows.serve(20)).count("b") in range(9, 12)
    await flows.stop()


async def test_a_queue_that_is_too_many_goes_only_when_nobody_waits_or_runs_in_it() -> None:
    flows = TwoFlows({"a": 0.003, "b": 0.003})
    await flows.ask("a", 2)
    await flows.ask("b", 2)
    queues = flows.queues
    queues.configure(Queuing(queues=1, hand=1, length=1000), limit=1)
    assert len(queues.queues) == 2, "somebody waits in the second"
    assert sorted(await flows.serve(3)) == ["a", "b", "b"]
    assert 1 in queues.queues or not queues.executing
    await asyncio.sleep(0)
    for ticket in [*queues.executing]:
        queues.finish(ticket)
    assert not queues.queues
    assert queues.is_idle


async def test_a_level_of_ten_million_queues_holds_only_busy_queues() -> None:
    queues = queue_set(limit=1, queuing=Queuing(queues=10_000_000, hand=2, length=50))
    running, waiting = Ticket(1), Ticket(1)
    assert queues.start(running)
    turn = asyncio.create_task(queues.wait(waiting, 12345, timeout=60.0))
    await asyncio.sleep(0)
    assert len(queues.queues) == 1
    queues.finish(running)
    await turn
    queues.finish(waiting)
    assert not queues.queues


async def test_a_level_is_idle_when_nobody_waits_and_nobody_runs() -> None:
    flows = TwoFlows({"a": 0.003, "b": 0.003})
    assert flows.queues.is_idle
    await flows.ask("a", 1)
    assert not flows.queues.is_idle
    flows.queues.configure(flows.queues.queuing, limit=0)
    await flows.ask("b", 1)
    flows.queues.finish(next(iter(flows.queues.executing)))
    assert not flows.queues.is_idle, "one still waits"
    await flows.stop()
    assert flows.queues.is_idle


@settings(max_examples=30)
@given(st.integers(min_value=0, max_value=10**6), st.integers(min_value=1, max_value=6))
async def test_seats_are_never_given_twice_and_nobody_is_forgotten(seed: int, limit: int) -> None:
    rnd, clock = random.Random(seed), Clock()
    queues = queue_set(limit=limit, queuing=Queuing(queues=4, hand=2, length=1000), clock=clock)
    running: list[Ticket] = []
    done = 0

    async def one(ticket: Ticket, flow: str) -> None:
        await begin(queues, ticket, flow)
        running.append(ticket)

    tasks = [asyncio.ensure_future(one(Ticket(rnd.randint(1, 3)), rnd.choice("abc"))) for _ in range(40)]
    cancelled = rnd.sample(tasks, 5)
    for task in cancelled:
        asyncio.get_running_loop().call_soon(task.cancel)
    while done < len(tasks):
        await asyncio.sleep(0)
        in_use = sum(ticket.seats for ticket in queues.executing)
        assert queues.seats_in_use == in_use
        assert in_use <= limit or len(queues.executing) == 1
        if running:
            clock.at += rnd.random() / 100
            queues.finish(running.pop(rnd.randrange(len(running))))
        done = sum(1 for task in tasks if task.done()) if not running else 0
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (queues.waiting, queues.seats_waiting, queues.seats_in_use) == (0, 0, 0)


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 50), st.integers(0, 80)).map(
            lambda made: SeatClaim(lower=made[0], upper=made[0] + made[1], target=max(made[0], made[2]))
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(min_value=0, max_value=300),
)
def test_seats_are_divided_within_bounds_and_alike(claims: list[SeatClaim], total: int) -> None:
    given_out = allocate(total, claims)
    least, most = sum(claim.lower for claim in claims), sum(claim.upper for claim in claims)
    assert sum(given_out.seats) == pytest.approx(min(max(total, least), most), abs=0.01)
    for claim, seats in zip(claims, given_out.seats, strict=True):
        assert claim.lower - 1e-6 <= seats <= claim.upper + 1e-6


def test_demand_rises_at_once_and_falls_slowly() -> None:
    demand, stats = SeatDemand(), DemandStats()
    demand.add(10, 10.0)
    stats.update(demand.reset(0))
    assert (stats.high, stats.smoothed) == (10, 10.0)
    demand.add(0, 10.0)
    stats.update(demand.reset(0))
    assert stats.high == 0
    assert 9.0 < stats.smoothed < 10.0
