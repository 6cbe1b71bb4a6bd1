"""The queues of a priority level: fair queuing in virtual time.

Each queue tracks the virtual start time of its next request, and advances by the work of dispatched requests. Busy
queues therefore get equal service. A previously empty queue starts at the current virtual time.

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
"""Estimated duration of a request before completion, in seconds."""


class Rejected(Exception):
    """The request is rejected; the text is the reason label of the metrics."""


@dataclass(slots=True, eq=False)
class Ticket:
    """A queued, executing or cancelled request."""

    seats: int
    flow: str = ""
    schema: str = ""
    queue: Queue | None = None
    arrived: float = 0.0
    started: float = 0.0
    arrival_r: float = 0.0
    turn: asyncio.Future[None] | None = None
    about: object = None
    """Description for debug dumps."""
    is_read: bool = False

    @property
    def work(self) -> float:
        return self.seats * _ESTIMATED_SECONDS


@dataclass(slots=True, eq=False)
class Queue:
    index: int
    waiting: deque[Ticket] = field(default_factory=deque)
    seats_waiting: int = 0  # sum over waiting requests
    executing: int = 0
    seats_in_use: int = 0
    next_r: float = 0.0  # virtual start time of the next request

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.executing

    @property
    def waiting_work(self) -> float:
        return self.seats_waiting * _ESTIMATED_SECONDS


@dataclass(frozen=True, slots=True)
class Queuing:
    """Queuing configuration. queues: 0 = reject when full; -1 = exempt (never queue or reject)."""

    queues: int
    hand: int = 1
    length: int = 0

    @property
    def places(self) -> int:
        """Return the maximum number of waiting requests."""
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
        """Index → active queue. Idle queues have no state, so ten million queues cost nothing."""
        self.use = LevelUse(now)
        self.now = now
        self._r = 0.0
        self._at = now()
        self._robin = 0
        self._dealt = 0
        self.configure(queuing, limit=0)

    def configure(self, queuing: Queuing, *, limit: int) -> None:
        """Apply a configuration. Requests in excess queues stay queued until dispatched."""
        self.queuing = queuing
        self.limit = limit
        self._dispatch_all()

    @property
    def virtual_time(self) -> float:
        """Return the virtual time of the last change."""
        return self._r

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.executing

    def start(self, ticket: Ticket) -> bool:
        """Return whether the request may run immediately; the caller must then `finish` it. Raises Rejected."""
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
        """Wait for dispatch; the caller must then `finish` the request. Raises Rejected."""
        self._enqueue(ticket, entropy)
        self._dispatch_all()
        assert ticket.turn is not None
        limit = asyncio.get_running_loop().call_later(timeout, self._time_out, ticket, ticket.turn)
        try:
            await ticket.turn
        except asyncio.CancelledError:
            # The client disconnected while waiting or right after dispatch.
            self.cancelled += 1
            if ticket in self.executing:
                self.finish(ticket)
            else:
                self._leave(ticket)
            raise
        finally:
            limit.cancel()

    def finish(self, ticket: Ticket) -> None:
        """Release the seats, and dispatch waiting requests."""
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
            # Replace the estimate charged at dispatch with the actual duration.
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
        # The least loaded queue of the flow's hand; ties rotate.
        hand = deal(entropy, deck=self.queuing.queues, hand=self.queuing.hand)
        self._dealt += 1
        turned = hand[self._dealt % len(hand) :] + hand[: self._dealt % len(hand)]
        queue = min((self.queues.get(card) or Queue(card) for card in turned), key=_seats_waiting)
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

    def _dispatch_all(self) -> None:
        while self.waiting and self.seats_in_use < self.limit and self._dispatch():
            pass

    def _dispatch(self) -> bool:
        """Dispatch the next request; return False if seats are missing."""
        self._sync()
        queue = self._next_queue()
        ticket = queue.waiting[0]
        assert ticket.turn is not None
        if ticket.turn.done():  # the client has disconnected; its task cleans up
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
        """Return the queue with the earliest virtual finish time; ties resolve round-robin."""

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
        """Return whether the seats are free. A request wider than the level fits when nothing else runs."""
        return self.seats_in_use + seats <= self.limit or (seats > self.limit and not self.executing)

    def _leave(self, ticket: Ticket) -> None:
        """Remove the ticket from its queue; idempotent."""
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
        """Advance the queue's virtual time, so that idle time earns no credit."""
        if queue.waiting:
            queue.next_r = max(queue.next_r, queue.waiting[0].arrival_r)

    def _sync(self) -> None:
        """Advance virtual time by the service per busy queue. The rate uses the seats in use, not the limit, because
        pacing delays requests without prolonging them."""
        now = self.now()
        if self.queues:
            self._r += self.seats_in_use / len(self.queues) * (now - self._at)
        self._at = now

    def _note_use(self) -> None:
        self.use.enter((self.seats_in_use, self.seats_waiting, len(self.executing), self.waiting))


_seats_waiting = attrgetter("seats_waiting")
