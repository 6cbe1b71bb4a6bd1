"""/debug/api_priority_and_fairness/: dumps of priority levels, queues and requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from pilothouse.apiserver.flowcontrol.controller import FlowController
from pilothouse.apiserver.flowcontrol.levels import PriorityLevel
from pilothouse.apiserver.flowcontrol.queue_set import Queue, Ticket
from pilothouse.apiserver.http import Handler, Request, Response, text
from pilothouse.apiserver.server.mux import PathRecorderMux

_ROOT = "/debug/api_priority_and_fairness/"
_LEVELS = [
    "PriorityLevelName",
    "ActiveQueues",
    "IsIdle",
    "IsQuiescing",
    "WaitingRequests",
    "ExecutingRequests",
    "DispatchedRequests",
    "RejectedRequests",
    "TimedoutRequests",
    "CancelledRequests",
]
_QUEUES = [
    "PriorityLevelName",
    "Index",
    "PendingRequests",
    "ExecutingRequests",
    "SeatsInUse",
    "NextDispatchR",
    "InitialSeatsSum",
    "MaxSeatsSum",
    "TotalWorkSum",
]
_REQUESTS = [
    "PriorityLevelName",
    "FlowSchemaName",
    "QueueIndex",
    "RequestIndexInQueue",
    "FlowDistingsher",
    "ArriveTime",
    "InitialSeats",
    "FinalSeats",
    "AdditionalLatency",
    "StartTime",
]
_DETAILS = ["UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"]

_IDLE_QUEUES = 1000
"""Maximum rows of idle queues per level."""

_Row: TypeAlias = list[str]
_Rows: TypeAlias = Callable[[list[PriorityLevel], Request], Iterator[_Row]]


def install_flowcontrol_debug(mux: PathRecorderMux, controller: FlowController) -> None:
    dumps: dict[str, _Rows] = {
        "dump_priority_levels": _levels,
        "dump_queues": _queues,
        "dump_requests": _requests,
    }
    for name, rows in dumps.items():
        mux.handle(_ROOT + name, _handler(controller, rows), listed=False)


def _handler(controller: FlowController, rows: _Rows) -> Handler:
    async def dump(request: Request) -> Response:
        levels = sorted(controller.levels.values(), key=lambda level: level.name)
        return text(200, _table(list(rows(levels, request))))

    return dump


def _table(rows: list[_Row]) -> str:
    """Align the columns like Go's tabwriter."""
    cells = [[f"{cell}," for cell in row[:-1]] + row[-1:] for row in rows]
    widths = [max(8, *(len(row[column]) + 1 for row in cells)) for column in range(len(cells[0]))]
    return "".join(
        f"{(''.join(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)) + row[-1])}\n"
        for row in cells
    )


def _levels(levels: list[PriorityLevel], request: Request) -> Iterator[_Row]:
    yield _LEVELS
    for level in levels:
        queues = level.queues
        active = sum(1 for queue in queues.queues.values() if queue.waiting)
        counts = [queues.waiting, len(queues.executing), queues.dispatched, queues.rejected, queues.timed_out]
        states = [str(queues.is_idle).lower(), str(level.quiescing).lower()]
        yield [level.name, str(active), *states, *map(str, counts), str(queues.cancelled)]


def _queues(levels: list[PriorityLevel], request: Request) -> Iterator[_Row]:
    yield _QUEUES
    for level in levels:
        busy, all_queues = level.queues.queues, range(level.queuing.queues)
        for index in sorted({*all_queues[:_IDLE_QUEUES], *busy}):
            queue = busy.get(index) or Queue(index)
            seats = str(sum(ticket.seats for ticket in queue.waiting))
            counts = [index, len(queue.waiting), queue.executing, queue.seats_in_use]
            times = [_seat_seconds(queue.next_r), seats, seats, _seat_seconds(queue.waiting_work)]
            yield [level.name, *map(str, counts), *times]


def _requests(levels: list[PriorityLevel], request: Request) -> Iterator[_Row]:
    details = bool(request.param("includeRequestDetails"))
    yield _REQUESTS + (_DETAILS if details else [])
    for level in levels:
        for index, queue in sorted(level.queues.queues.items()):
            for position, ticket in enumerate(queue.waiting):
                yield _request(level, ticket, index, position, details=details)
        for ticket in level.queues.executing:
            yield _request(level, ticket, -1 if ticket.queue is None else ticket.queue.index, -1, details=details)


def _request(level: PriorityLevel, ticket: Ticket, queue: int, position: int, *, details: bool) -> _Row:
    arrived = _timestamp(level, ticket.arrived)
    started = _timestamp(level, ticket.started) if position < 0 else "0001-01-01T00:00:00Z"
    row = [level.name, ticket.schema, str(queue), str(position), ticket.flow, arrived]
    row += [str(ticket.seats), "0", "0s", started]
    if details and isinstance(ticket.about, Request):
        asked = ticket.about
        info = asked.info
        version = f"{info.group}/{info.version}" if info.group else info.version
        row += [asked.user.name, info.verb, info.path, info.namespace, info.name, version]
        row += [info.resource, info.subresource]
    return row


def _timestamp(level: PriorityLevel, at: float) -> str:
    ago = timedelta(seconds=level.queues.now() - at)
    return (datetime.now(UTC) - ago).isoformat().replace("+00:00", "Z")


def _seat_seconds(value: float) -> str:
    return f"{value:.8f}ss"
