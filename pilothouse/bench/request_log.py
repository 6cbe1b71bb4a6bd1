"""The log of a Recording: requests of a program and the watch events sent to the program, in order, with revisions.

A write carries the numbers of earlier reads and events (`after`): the write can depend on any of them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.storage.cacher.events import EventType, WatchEvent
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher, DelegatingWatcher
from pilothouse.apiserver.storage.interface import Store
from pilothouse.bench.definitions import number, record
from pilothouse.bench.faults.fault import Fault, Selector
from pilothouse.bench.faults.faults import read_early
from pilothouse.kinds.definitions import text_field
from pilothouse.machinery.adjustable_time import AdjustableTime
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

MAX_LOG: Final = 2000
_MAX_BODY: Final = 64 * 1024
READS: Final = frozenset({"get", "list", "watch", "head", "options"})
EVENT: Final = "event"
_LIST_VERSION: Final = re.compile(rb'"metadata":\{[^{}]*"resourceVersion":"(\d+)"')

LOG_ENTRY: Final = record(
    "A request, or a watch event.",
    {
        "number": number("Position in the log, from 1."),
        "time": {"type": "number", "description": "Server time in seconds since the epoch."},
        "user": text_field("User name."),
        "verb": text_field("The verb, as in RBAC; `event` for a watch event."),
        "event": text_field("Type of a watch event: ADDED, MODIFIED, DELETED."),
        "group": text_field("The API group."),
        "resource": text_field("The resource."),
        "subresource": text_field("The subresource, if any."),
        "namespace": text_field("The namespace, if any."),
        "name": text_field("Object name; of a create, the name of the new object."),
        "code": number("HTTP status of the response; 0 if the response was not sent."),
        "before": number("Revision of the store when the request arrived."),
        "revision": number(
            "Revision of the written object (0 for a write without effect), of the read state, or of the event."
        ),
        "after": number("Number of the last read or event before a write."),
        "options": {
            "type": "object",
            "description": "Query parameters.",
            "additionalProperties": {"type": "string"},
        },
        "body": {
            "description": "JSON body of a write of at most 64 KiB; the message of a refused request.",
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "fault": text_field("Name of the Fault that hit the request."),
    },
    required=["number", "user", "verb"],
)


@dataclass(slots=True)
class LogEntry:
    """One line of a log; fields as in LOG_ENTRY."""

    number: int
    user: str
    verb: str
    time: float = 0.0
    event: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    code: int = 0
    before: int = 0
    revision: int = 0
    after: int = 0
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    body: Any = None
    fault: str = ""

    @property
    def is_write(self) -> bool:
        return self.verb not in READS and self.verb != EVENT

    def to_json(self) -> Json:
        fields = (field.name for field in dataclasses.fields(self))
        return {name: value for name in fields if (value := getattr(self, name)) or name == "number"}

    @classmethod
    def from_json(cls, entry: Json) -> LogEntry:
        return cls(**entry)


class RequestLog:
    """Requests and watch events of the selected clients. `limit` bounds the number of entries; 0 = unlimited."""

    def __init__(self, selector: Selector, store: Store, server_time: AdjustableTime, *, limit: int = 0) -> None:
        self.selector = selector
        self.entries: list[LogEntry] = []
        self.on_change: Callable[[], None] = lambda: None
        self.store = store
        self._time = server_time
        self._limit = limit

    def new_entry(self, user: str, verb: str, **fields: Any) -> LogEntry:
        """Append an entry, unless the log is full."""
        entry = LogEntry(len(self.entries) + 1, user, verb, round(self._time.wall(), 3), **fields)
        if not self._limit or len(self.entries) < self._limit:
            self.entries.append(entry)
            self.on_change()
        return entry


class LoggedRequest:
    """One request on its way through the faults and the handler, in all logs that select the request."""

    def __init__(self, logs: list[RequestLog], request: Request) -> None:
        info = request.info
        self._logs = logs
        self._place = {"group": info.group, "resource": info.resource or info.path, "subresource": info.subresource}
        options = {name: values[0][:256] for name, values in request.query.items() if values}
        self._entries = [
            log.new_entry(
                request.user.name,
                info.verb,
                **self._place,
                namespace=info.namespace,
                name=info.name,
                options=options,
                after=log.entries[-1].number if log.entries else 0,
            )
            for log in logs
        ]

    def on_hit(self, fault: Fault) -> None:
        self._set(fault=fault.name)

    async def answer(
        self, request: Request, handler: Handler, faulty: Callable[[Request, Handler], Awaitable[Response]]
    ) -> Response:
        """Answer by `faulty(request, handler)`, and log the outcome."""
        store, is_write = self._logs[0].store, request.info.verb not in READS
        self._set(before=await store.current_revision())
        if is_write and (body := await read_early(request)):
            self._set(body=_json_of(body))

        async def log_watch(request: Request) -> Response:
            if request.info.verb == "watch":
                follow, user = request.watched, request.user.name

                def logging(watcher: CacheWatcher) -> CacheWatcher:
                    return LoggingWatcher(watcher if follow is None else follow(watcher), self._logs, user, self._place)

                request.watched = logging
            response = await handler(request)
            self._set(code=response.status)
            self._note_answer(response, is_write, await store.current_revision())
            return response

        try:
            response = await faulty(request, log_watch)
        except StatusError as error:
            self._set(code=error.code, revision=0, **({} if is_write else {"body": str(error)}))
            if is_write and error.code >= 400:
                for entry in self._entries:
                    entry.options = {**entry.options, "error": str(error)[:512]}
            raise
        if (
            not isinstance(response.body, bytes)
            and request.info.verb != "watch"
            and any(entry.fault for entry in self._entries)
        ):
            self._set(code=0)  # the connection was cut
        return response

    def _note_answer(self, response: Response, is_write: bool, current: int) -> None:
        body = response.body if isinstance(response.body, bytes) else b""
        if not is_write:
            found = _LIST_VERSION.search(body[:1024])
            self._set(revision=int(found[1]) if found else current)
            return
        answer = _json_of(body)
        metadata = answer.get("metadata") if isinstance(answer, dict) else None
        if isinstance(metadata, dict) and str(metadata.get("resourceVersion") or "").isdigit():
            self._set(revision=int(metadata["resourceVersion"]), name=metadata.get("name") or "")
        else:
            self._set(revision=current)
        if self._entries[0].verb in ("delete", "deletecollection"):
            self._set(revision=current)  # the answer has the revision before the deletion
        for entry in self._entries:
            if entry.revision <= entry.before:
                entry.revision = 0  # nothing was written

    def _set(self, **fields: Any) -> None:
        for log, entry in zip(self._logs, self._entries, strict=True):
            for name, value in fields.items():
                setattr(entry, name, value)
            log.on_change()


class LoggingWatcher(DelegatingWatcher):
    """Delegates to another watcher, and logs its events when they are read."""

    def __init__(self, watcher: CacheWatcher, logs: list[RequestLog], user: str, place: dict[str, str]) -> None:
        super().__init__(watcher)
        self._logs = logs
        self._user = user
        self._place = {"group": place["group"], "resource": place["resource"]}

    async def __anext__(self) -> WatchEvent:
        event = await super().__anext__()
        self._log(event)
        return event

    def drain(self) -> list[WatchEvent]:
        events = super().drain()
        for event in events:
            self._log(event)
        return events

    def _log(self, event: WatchEvent) -> None:
        if event.type == EventType.BOOKMARK:
            return
        metadata = event.object.parse()["metadata"]
        for log in self._logs:
            log.new_entry(
                self._user,
                EVENT,
                **self._place,
                event=event.type.value,
                namespace=metadata.get("namespace") or "",
                name=metadata.get("name") or "",
                revision=event.revision,
            )


def _json_of(body: bytes) -> Any:
    if len(body) > _MAX_BODY or body[:1] not in (b"{", b"["):
        return None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
