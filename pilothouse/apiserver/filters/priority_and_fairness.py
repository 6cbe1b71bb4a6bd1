"""Priority and fairness: each request takes seats of its priority level, or waits for its turn, or is told to come
again. Watches take them only until they begin; other long-running requests take none.
"""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.beside_the_loop import TRY_AGAIN_LATER
from pilothouse.apiserver.filters.long_running import is_long_running
from pilothouse.apiserver.filters.max_in_flight import READ_ONLY, InFlight
from pilothouse.apiserver.flowcontrol.controller import Flow, FlowController
from pilothouse.apiserver.flowcontrol.estimate import ONE_SEAT, StatsOf, WorkEstimate, count_watchers, estimate
from pilothouse.apiserver.flowcontrol.metrics import DISPATCHED, ESTIMATED_SEATS, EXECUTION, REJECTED, WAIT
from pilothouse.apiserver.flowcontrol.queue_set import Rejected, Ticket
from pilothouse.apiserver.flowcontrol.use import KindUse
from pilothouse.apiserver.foreign_time import waited_in_queue
from pilothouse.apiserver.http import Filter, Handler, Request, Response
from pilothouse.apiserver.streams import UntilEnd
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.server_errors import TooManyRequests

_RETRY_AFTER = 1


@dataclass(frozen=True, slots=True)
class FlowControl:
    controller: FlowController
    stats_of: StatsOf
    wait_limit: float
    """Seconds that a request may wait for its turn."""


def with_priority_and_fairness(control: FlowControl) -> Filter:
    controller, stats_of = control.controller, control.stats_of
    pacer = controller.pacer

    def wrap(handler: Handler) -> Handler:
        reading, writing = InFlight("readOnly"), InFlight("mutating")

        async def take_turns(request: Request) -> Response:
            flow = controller.flow_of(request.user, request.info)
            request.answer_headers.extend(flow.headers)
            is_watch = request.info.verb == "watch"
            if not is_watch and is_long_running(request.info):
                return await handler(request)
            if flow.is_exempt:
                count_watchers(request, stats_of, flow.labels)
            work = ONE_SEAT if flow.is_exempt else estimate(request, stats_of, flow.labels)
            is_read = request.info.verb in READ_ONLY
            ticket = Ticket(work.seats, flow.distinguisher, flow.schema.name, about=request, is_read=is_read)
            ESTIMATED_SEATS.observe(flow.labels, work.seats)
            use = controller.reads if is_read else controller.writes
            await _take_seats(flow, ticket, control.wait_limit, use)
            seats = _Seats(flow, ticket, work, is_watch=is_watch)
            kind = reading if is_read else writing
            kind.count += 1
            use.change(executing=1)
            try:
                if not flow.is_exempt and not pacer.begin(flow.entropy):
                    await pacer.wait(flow.level.line, flow.entropy, work.seats)
                response = await handler(request)
            except BaseException:
                seats.give_back()
                raise
            finally:
                kind.count -= 1
                use.change(executing=-1)
            if isinstance(response.body, bytes) or is_watch:
                seats.give_back()
            else:
                response.body = UntilEnd(response.body, seats.give_back)
            return response

        return take_turns

    return wrap


async def _take_seats(flow: Flow, ticket: Ticket, wait_limit: float, use: KindUse) -> None:
    labels = flow.labels
    try:
        if not flow.level.queues.start(ticket):
            use.change(waiting=1)
            try:
                await flow.level.queues.wait(ticket, flow.entropy, timeout=wait_limit)
            finally:
                use.change(waiting=-1)
    except Rejected as why:
        REJECTED.inc((*labels, str(why)))
        WAIT.observe((*labels, "false"), asyncio.get_running_loop().time() - ticket.arrived)
        raise TooManyRequests.of(TRY_AGAIN_LATER, _RETRY_AFTER) from None
    DISPATCHED.inc(labels)
    if ticket.queue is not None:
        waited_in_queue(ticket.started - ticket.arrived)
        WAIT.observe((*labels, "true"), ticket.started - ticket.arrived)


class _Seats:
    """The seats that a request has; they are given back once."""

    __slots__ = ("_flow", "_kind", "_ticket", "_work")

    def __init__(self, flow: Flow, ticket: Ticket, work: WorkEstimate, *, is_watch: bool) -> None:
        self._flow = flow
        self._kind = "watch" if is_watch else "regular"
        self._ticket: Ticket | None = ticket
        self._work = work

    def give_back(self) -> None:
        ticket, self._ticket = self._ticket, None
        if ticket is None:
            return
        queues = self._flow.level.queues
        EXECUTION.observe((*self._flow.labels, self._kind), queues.now() - ticket.started)
        if self._work.lingering:
            asyncio.get_running_loop().call_later(self._work.lingering, queues.finish, ticket)
        else:
            queues.finish(ticket)
