"""Priority and fairness: a request occupies seats of its priority level, waits in a queue, or is rejected with 429.
Watches occupy seats until they start or are proxied; other long-running requests occupy none."""

from __future__ import annotations

import asyncio
from functools import partial

from pilothouse.apiserver.external_latency import waited_in_queue
from pilothouse.apiserver.filters.max_in_flight import READ_ONLY, show_in_flight
from pilothouse.apiserver.flowcontrol.controller import Flow, FlowController
from pilothouse.apiserver.flowcontrol.estimate import ONE_SEAT, StatsOf, WorkEstimate, count_watchers, estimate
from pilothouse.apiserver.flowcontrol.queue_set import Rejected, Ticket
from pilothouse.apiserver.flowcontrol.series import DISPATCHED, REJECTED, WAIT
from pilothouse.apiserver.flowcontrol.use import KindUse
from pilothouse.apiserver.http import Filter, Handler, Request, Response
from pilothouse.apiserver.offload import TRY_AGAIN_LATER
from pilothouse.apiserver.streams import UntilEnd
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.server_errors import TooManyRequests

_RETRY_AFTER = 1


@dataclass(frozen=True, slots=True)
class FlowControl:
    controller: FlowController
    stats_of: StatsOf
    wait_limit: float
    """Maximum queue time in seconds."""


def with_priority_and_fairness(control: FlowControl) -> Filter:
    controller, stats_of = control.controller, control.stats_of
    pacer = controller.pacer

    show_in_flight("readOnly", controller.reads)
    show_in_flight("mutating", controller.writes)

    def wrap(handler: Handler) -> Handler:
        async def take_turns(request: Request) -> Response:
            info = request.info
            flow = controller.flow_of(request.user, info)
            request.answer_headers.extend(flow.headers)
            is_watch, is_read = info.verb == "watch", info.verb in READ_ONLY
            if info.is_long_running and not is_watch:
                return await handler(request)
            if flow.is_exempt:  # counts as one seat
                count_watchers(request, stats_of, flow.series)
                work = ONE_SEAT
            else:
                work = estimate(request, stats_of, flow.series)
            flow.series.estimated_seats.observe(work.seats)
            ticket = Ticket(work.seats, flow.distinguisher, flow.schema.name, about=request, is_read=is_read)
            use = controller.reads if is_read else controller.writes
            try:
                if not flow.level.queues.start(ticket):
                    use.change(0, waiting=1)
                    try:
                        await flow.level.queues.wait(ticket, flow.entropy, timeout=control.wait_limit)
                    finally:
                        use.change(0, waiting=-1)
                    waited_in_queue(ticket.started - ticket.arrived)
                    WAIT.observe((*flow.series.labels, "true"), ticket.started - ticket.arrived)
            except Rejected as reason:
                labels = flow.series.labels
                REJECTED.inc((*labels, str(reason)))
                WAIT.observe((*labels, "false"), asyncio.get_running_loop().time() - ticket.arrived)
                raise TooManyRequests.of(TRY_AGAIN_LATER, _RETRY_AFTER) from None
            DISPATCHED.inc(flow.series.labels)
            use.change(1)
            if is_watch:
                return await begin_watch(request, _WatchSeats(request, flow, ticket, work, use))
            try:
                if not flow.is_exempt and not pacer.begin(flow.entropy):
                    await pacer.wait(flow.level.line, flow.entropy, work.seats)
                response = await handler(request)
            except BaseException:
                _give_back(flow, ticket, work)
                raise
            finally:
                use.change(-1)
            if isinstance(response.body, bytes):
                _give_back(flow, ticket, work)
            else:
                response.body = UntilEnd(response.body, partial(_give_back, flow, ticket, work))
            return response

        async def begin_watch(request: Request, seats: _WatchSeats) -> Response:
            flow = seats.flow
            request.on_delegation = seats.give_back
            try:
                if not flow.is_exempt and not pacer.begin(flow.entropy):
                    await pacer.wait(flow.level.line, flow.entropy, seats.work.seats)
                return await handler(request)
            finally:
                seats.give_back()

        return take_turns

    return wrap


@dataclass(frozen=True, slots=True)
class _WatchSeats:
    """The seats of a watch, released when it starts or is proxied (upstream's RequestDelegated)."""

    request: Request
    flow: Flow
    ticket: Ticket
    work: WorkEstimate
    use: KindUse

    def give_back(self) -> None:
        """Idempotent."""
        if self.request.on_delegation is None:
            return
        self.request.on_delegation = None
        self.use.change(-1)
        _give_back(self.flow, self.ticket, self.work, is_watch=True)


def _give_back(flow: Flow, ticket: Ticket, work: WorkEstimate, *, is_watch: bool = False) -> None:
    queues = flow.level.queues
    execution = flow.series.watch_execution if is_watch else flow.series.execution
    execution.observe(queues.now() - ticket.started)
    if work.lingering:
        asyncio.get_running_loop().call_later(work.lingering, queues.finish, ticket)
    else:
        queues.finish(ticket)
