"""The queues of one priority level: fair queuing in virtual time.

Each queue has the virtual time at which its next request begins. It moves on by the work of what is dispatched, so
that of two queues that always have something waiting, both get the same; one that was empty begins at the present.

    queue A: 3 waiting, at R=10      queue B: 1 waiting, at R=4      B's request goes first, then A's
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import field
from operator import attrgetter

from pilothouse.apiserver.flowcontrol.shuffle_sharding import deal
from pilothouse.apiserver.flowcontrol.use import LevelUse
from pilothouse.machinery.dataclass import dataclass

_ESTIMATED_SECONDS = 0.003
"""The seconds that a request is thought to take, until it is known."""


class Rejected(Exception):
    """The request can not be served now; the text is the reason that metrics count."""


@dataclass(slots=True, eq=False)
class Ticket:
    """A request that waits, runs, or has been given up."""

    seats: int
    flow: str = ""
    schema: str = ""
    queue: Queue | None = None
    arrived: float = 0.0
    started: float = 0.0
    arrival_r: float = 0.0
    turn: asyncio.Future[None] | None = None
    about: object = None
    """The description that the dumps show."""
    is_read: bool = False

    @property
    def work(self) -> float:
        return self.seats * _ESTIMATED_SECONDS


@dataclass(slots=True, eq=False)
class Queue:
    index: int
    waiting: deque[Ticket] = field(default_factory=deque)
    seats_waiting: int = 0  # of all that wait
    executing: int = 0
    seats_in_use: int = 0
    next_r: float = 0.0  # the virtual time at which its next request begins

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.executing

    @property
    def waiting_work(self) -> float:
        return self.seats_waiting * _ESTIMATED_SECONDS


@dataclass(frozen=True, slots=True)
class Queuing:
    """`queues` is 0 where what does not fit is refused, and -1 where nothing ever is."""

    queues: int
    hand: int = 1
    length: int = 0

    @property
    def places(self) -> int:
        """How many requests may wait."""
        return max(0, self.queues) * self.length


class QueueSet:
    def __init__(self, queuing: Queuing, *, now: Callable[[], float]) -> None:
        self.limit = 0
        self.seats_in_use = 0
        self.seats_waiting = 0
        self.executing: dict[Ticket, None] = {}
        self.waiting = 0
        self.dispatched = self.rejected = self.timed_out = self.cancelled = 0
        self.queues: dict[int, Queue] = {}
        """Queues that are not idle, by index. An idle queue has no state, so ten million of them cost nothing."""
        self.use = LevelUse(now)
        self.now = now
        self._r = 0.0
        self._at = now()
        self._robin = 0
        self._dealt = 0
        self.configure(queuing, limit=0)

    def configure(self, queuing: Queuing, *, limit: int) -> None:
        """Requests in queues that are too many stay there until their turn comes."""
        self.queuing = queuing
        self.limit = limit
        self._dispatch_all()

    @property
    def virtual_time(self) -> float:
        """How far each flow has come, at the last change."""
        return self._r

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.executing

    def start(self, ticket: Ticket) -> bool:
        """Whether the request may run at once, in which case it must be finished. Raises Rejected."""
        ticket.arrived = ticket.started = self.now()
        queues = self.queuing.queues
        if not self.waiting and (queues < 0 or self._fits(ticket.seats)):
            self._run(ticket)
            return True
        if queues <= 0:
            self.rejected += 1
            raise Rejected("concurrency-limit")
        return False

    async def wait(self, ticket: Ticket, entropy: int, *, timeout: float) -> None:
        """Returns when the request's turn has come, and it must be finished. Raises Rejected."""
        self._enqueue(ticket, entropy)
        self._dispatch_all()
        assert ticket.turn is not None
        limit = asyncio.get_running_loop().call_later(timeout, self._time_out, ticket, ticket.turn)
        try:
            await ticket.turn
        except asyncio.CancelledError:
            self._cancel(ticket)
            raise
        finally:
            limit.cancel()

    def finish(self, ticket: Ticket) -> None:
        """Gives the seats to whoever is next."""
        if ticket.queue is not None:
            self._sync()
        del self.executing[ticket]
        self.seats_in_use -= ticket.seats
        self._note_use()
        if ticket.queue is not None:
            queue = ticket.queue
            queue.executing -= 1
            queue.seats_in_use -= ticket.seats
            self._rest(queue)
            # It was charged an estimate when it began.
            queue.next_r -= ticket.seats * (_ESTIMATED_SECONDS - (self.now() - ticket.started))
            self._bound(queue)
        if self.waiting:
            self._dispatch_all()

    def _time_out(self, ticket: Ticket, turn: asyncio.Future[None]) -> None:
        if not turn.done():
            self.timed_out += 1
            self._leave(ticket)
            turn.set_exception(Rejected("time-out"))

    def _enqueue(self, ticket: Ticket, entropy: int) -> None:
        self._sync()
        queue = self._choose(entropy)
        taken = self.seats_in_use + self.seats_waiting
        if taken >= self.limit and len(queue.waiting) >= self.queuing.length:
            self.rejected += 1
            raise Rejected("queue-full")
        if queue.is_idle:
            queue.next_r = self._r
        ticket.queue, ticket.arrival_r = queue, self._r
        ticket.turn = asyncio.get_running_loop().create_future()
        queue.waiting.append(ticket)
        queue.seats_waiting += ticket.seats
        self.queues[queue.index] = queue
        self.waiting += 1
        self.seats_waiting += ticket.seats
        self._note_use()

    def _choose(self, entropy: int) -> Queue:
        """Return the queue of the flow's hand with the least to do; among equals they take turns."""
        hand = deal(entropy, deck=self.queuing.queues, hand=self.queuing.hand)
        self._dealt += 1
        turned = hand[self._dealt % len(hand) :] + hand[: self._dealt % len(hand)]
        return min((self.queues.get(card) or Queue(card) for card in turned), key=_seats_waiting)

    def _dispatch_all(self) -> None:
        while self.waiting and self.seats_in_use < self.limit and self._dispatch():
            pass

    def _dispatch(self) -> bool:
        """Start the next request; return False when it must wait for more seats."""
        self._sync()
        queue = self._next_queue()
        ticket = queue.waiting[0]
        assert ticket.turn is not None
        if ticket.turn.done():  # its client has gone, and will clean up when it is its task's turn
            self._leave(ticket)
            return True
        if not self._fits(ticket.seats):
            return False
        queue.waiting.popleft()
        queue.seats_waiting -= ticket.seats
        self.waiting -= 1
        self.seats_waiting -= ticket.seats
        queue.executing += 1
        queue.seats_in_use += ticket.seats
        queue.next_r += ticket.work
        self._bound(queue)
        ticket.started = self.now()
        self._run(ticket)
        ticket.turn.set_result(None)
        return True

    def _next_queue(self) -> Queue:
        """The one whose next request would be done first in virtual time, the search beginning behind the last."""

        def turn(queue: Queue) -> tuple[float, bool, int]:
            return queue.next_r + queue.waiting[0].work, queue.index <= self._robin, queue.index

        best = min((queue for queue in self.queues.values() if queue.waiting), key=turn)
        self._robin = best.index
        return best

    def _run(self, ticket: Ticket) -> None:
        self.dispatched += 1
        self.executing[ticket] = None
        self.seats_in_use += ticket.seats
        self._note_use()

    def _fits(self, seats: int) -> bool:
        """Whether there are seats for the request; one wider than the whole level fits when nothing else runs."""
        return self.seats_in_use + seats <= self.limit or (seats > self.limit and not self.executing)

    def _cancel(self, ticket: Ticket) -> None:
        """The client has gone: while it waited, or just when its turn came."""
        self.cancelled += 1
        if ticket in self.executing:
            self.finish(ticket)
        else:
            self._leave(ticket)

    def _leave(self, ticket: Ticket) -> None:
        """Take the ticket out of its queue; a second call does nothing."""
        assert ticket.queue is not None
        if ticket not in ticket.queue.waiting:
            return
        ticket.queue.waiting.remove(ticket)
        ticket.queue.seats_waiting -= ticket.seats
        self._rest(ticket.queue)
        self.waiting -= 1
        self.seats_waiting -= ticket.seats
        self.rejected += 1
        self._bound(ticket.queue)
        self._note_use()

    def _rest(self, queue: Queue) -> None:
        if queue.is_idle:
            self.queues.pop(queue.index, None)

    def _bound(self, queue: Queue) -> None:
        """A queue saves up nothing while it has nothing to do."""
        if queue.waiting:
            queue.next_r = max(queue.next_r, queue.waiting[0].arrival_r)

    def _sync(self) -> None:
        """Virtual time is what each of the busy queues has got, were all served alike: the seats that are really in
        use, not those that could be, since what is paced runs later and not longer."""
        now = self.now()
        if self.queues:
            self._r += self.seats_in_use / len(self.queues) * (now - self._at)
        self._at = now

    def _note_use(self) -> None:
        self.use.enter((self.seats_in_use, self.seats_waiting, len(self.executing), self.waiting))


_seats_waiting = attrgetter("seats_waiting")
