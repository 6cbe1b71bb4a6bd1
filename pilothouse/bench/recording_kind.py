"""The kind Recording: requests of selected users and programs since its creation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from pilothouse.apiserver.http import Request
from pilothouse.apiserver.storage.interface import Store
from pilothouse.bench.definitions import GROUP, bench_resource, number, record, texts
from pilothouse.bench.faults.fault import Selector
from pilothouse.bench.request_log import LOG_ENTRY, MAX_LOG, LogEntry, RequestLog
from pilothouse.bench.served_kind import ServedKind
from pilothouse.kinds.definitions import flag_field, printer_column, text_field
from pilothouse.machinery.adjustable_time import AdjustableTime
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_REQUEST: Final = record(
    "Requests with the same RBAC attributes.",
    {
        "user": text_field("User name."),
        "verb": text_field("The verb, as in RBAC."),
        "group": text_field("The API group; empty for the core group and for non-resource paths."),
        "resource": text_field("The resource; empty for non-resource paths."),
        "subresource": text_field("The subresource, if any."),
        "namespace": text_field("The namespace; empty for all namespaces and for cluster-scoped resources."),
        "name": text_field("Object name; empty if none was named, * for many names."),
        "nonResourceURL": text_field("The path of a non-resource request."),
        "count": number("Number of requests."),
    },
    required=["user", "verb", "count"],
)

RECORDING: Final = bench_resource(
    "Recording",
    "recordings",
    "Recording collects the requests of the selected users and programs since its creation, whether"
    " allowed or denied. `pilothouse rbac --from-recording NAME` prints the minimal roles.",
    spec=record(
        "Selected requests; default: all. Requests of the server itself must be selected by user.",
        {
            "users": texts("User names; a trailing * is a wildcard."),
            "userAgents": texts("Prefixes of the User-Agent header."),
            "log": flag_field(
                "Whether status.log has every request and every watch event in order, with bodies and revisions."
            ),
        },
    ),
    status=record(
        "The recorded requests.",
        {
            "requests": {
                "type": "array",
                "description": "Distinct requests.",
                "items": _REQUEST,
                "x-kubernetes-list-type": "atomic",
            },
            "log": {
                "type": "array",
                "description": f"With spec.log: requests and watch events in order, at most {MAX_LOG}.",
                "items": LOG_ENTRY,
                "x-kubernetes-list-type": "atomic",
            },
            "total": number("Total number of requests."),
            "distinct": number("Number of distinct requests."),
            "left": number("Number of requests beyond the limit of distinct requests."),
        },
    ),
    columns=[
        printer_column("Users", ".spec.users"),
        printer_column("Requests", ".status.total", "integer"),
        printer_column("Distinct", ".status.distinct", "integer"),
    ],
)


MANY: Final = "*"
_MAX_NAMES: Final = 16
_MAX_REQUESTS: Final = 1000


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """RBAC attributes of a request."""

    user: str
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @classmethod
    def of(cls, request: Request) -> RecordedRequest:
        info = request.info
        if not info.is_resource:
            return cls(request.user.name, info.verb, path=info.path)
        place = (info.group, info.resource, info.subresource, info.namespace, info.name)
        return cls(request.user.name, info.verb, *place)

    def to_json(self, count: int) -> Json:
        """Return the entry for the status."""
        fields = ("group", "resource", "subresource", "namespace", "name")
        attributes = {field: value for field in fields if (value := getattr(self, field))}
        path = {"nonResourceURL": self.path} if self.path else {}
        return {"user": self.user, "verb": self.verb, **attributes, **path, "count": count}


class Tape:
    """Requests of one Recording."""

    def __init__(self, selector: Selector, status: Json) -> None:
        self.who = selector
        self._counts: dict[RecordedRequest, int] = {}
        self._names: dict[RecordedRequest, set[str]] = {}  # request without its name -> names
        self._total: int = status.get("total") or 0
        self._left: int = status.get("left") or 0
        for entry in status.get("requests") or ():
            fields = {key: value for key, value in entry.items() if key not in ("count", "nonResourceURL")}
            self._count(RecordedRequest(**fields, path=entry.get("nonResourceURL") or ""), entry["count"])

    def add(self, request: RecordedRequest) -> None:
        self._total += 1
        self._count(request, 1)

    @property
    def status(self) -> Json:
        requests = [request.to_json(count) for request, count in self._counts.items()]
        status = {"requests": requests, "total": self._total, "distinct": len(requests)}
        return status | ({"left": self._left} if self._left else {})

    def _count(self, request: RecordedRequest, count: int) -> None:
        request = self._with_few_names(request)
        if request in self._counts or len(self._counts) < _MAX_REQUESTS:
            self._counts[request] = self._counts.get(request, 0) + count
        else:
            self._left += count

    def _with_few_names(self, request: RecordedRequest) -> RecordedRequest:
        """Replace the name by * once a request has too many names."""
        if not request.name:
            return request
        wildcard = replace(request, name=MANY)
        if wildcard in self._counts:
            return wildcard
        names = self._names.setdefault(wildcard, set()) if len(self._names) < _MAX_REQUESTS else {MANY}
        names.add(request.name)
        if request.name != MANY and len(names) <= _MAX_NAMES:
            return request
        self._counts[wildcard] = sum(self._counts.pop(replace(request, name=name), 0) for name in names)
        self._names.pop(wildcard, None)
        return wildcard


class Recordings:
    """Owner of Recordings."""

    kind: ServedKind

    def __init__(self, store: Store, server_time: AdjustableTime) -> None:
        self._store, self._time = store, server_time
        self._tapes: dict[str, Tape] = {}
        self._logs: dict[str, RequestLog] = {}  # by name of the Recording
        self._own_logs: list[RequestLog] = []  # of code in this process

    def logs(self, request: Request, *, own: bool) -> list[RequestLog]:
        """Return the logs that select the request."""
        if (not self._logs and not self._own_logs) or request.info.group == GROUP:
            return []
        user, agent = request.user.name, request.header(b"user-agent")
        return [log for log in (*self._logs.values(), *self._own_logs) if log.selector.fits(user, agent, own=own)]

    @contextmanager
    def log(self, selector: Selector) -> Iterator[RequestLog]:
        """Log selected requests for the duration of the block, for code in this process."""
        log = RequestLog(selector, self._store, self._time)
        self._own_logs.append(log)
        try:
            yield log
        finally:
            self._own_logs.remove(log)

    def record(self, request: Request, *, own: bool) -> None:
        if request.info.group == GROUP:
            return  # requests of the test itself
        for name, tape in self._tapes.items():
            if tape.who.fits(request.user.name, request.header(b"user-agent"), own=own):
                tape.add(RecordedRequest.of(request))
                self.kind.changed(name)

    async def hear(self, name: str, obj: Json | None) -> None:
        if obj is None:
            self._tapes.pop(name, None)
            self._logs.pop(name, None)
            return
        selector = Selector.of(obj.get("spec") or {})
        if name not in self._tapes:
            self._tapes[name] = Tape(selector, obj.get("status") or {})
        self._tapes[name].who = selector
        if (obj.get("spec") or {}).get("log") and name not in self._logs:
            log = RequestLog(selector, self._store, self._time, limit=MAX_LOG)
            log.entries += [LogEntry.from_json(entry) for entry in (obj.get("status") or {}).get("log") or ()]
            log.on_change = partial(self.kind.changed, name)
            self._logs[name] = log
        self.kind.changed(name)

    def revised(self, name: str, obj: Json) -> Json | None:
        tape = self._tapes.get(name)
        if tape is None:
            return None
        log = self._logs.get(name)
        entries = {"log": [entry.to_json() for entry in log.entries]} if log is not None else {}
        return obj | {"status": tape.status | entries}

    async def about_to_be_read(self) -> None:
        """Do nothing: changes are reported immediately."""
