"""Requests in the log: each one from -v=3 on, and a slow one whatever the verbosity is, with the id under which the
audit log and the traces have it."""

from __future__ import annotations

import logging
import time
from random import getrandbits
from typing import Final

from pilothouse.apiserver.filters.internal_error import asked_url
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.logs import log_pairs, v
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.apiserver.source_ips import source_ips
from pilothouse.machinery.durations import format_duration

SLOW: Final = 0.5
"""Seconds after which upstream thinks a request worth a line."""
EACH: Final = v(3)
_OWN: Final = v(2)
_LONGEST_AGENT = 255
OTHER: Final = "other"
_SHOWN = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
    "proxy": "CONNECT",
}
_SPANS = {"get": "Get", "list": "List", "create": "Create", "update": "Update", "patch": "Patch"}
log = logging.getLogger(__name__)


def shown_verb(verb: str) -> str:
    """Return the verb as metrics, traces and the log name it."""
    return _SHOWN.get(verb, OTHER)


def scope_of(info: RequestInfo) -> str:
    """Return how much a request is about. Whoever creates means one object, though the path has no name for it."""
    if len(info.parts) > 1 or info.verb == "create":
        return "resource"
    return "namespace" if info.namespace else "cluster"


def trace_fields(request: Request) -> dict[str, str]:
    """Return all that is said of a request in its spans, and in the log where it was slow."""
    info = request.info
    return {
        "accept": request.header(b"accept"),
        "audit-id": request.audit_id,
        "client": next(iter(source_ips(request)), ""),
        "api-group": info.group,
        "api-version": info.version,
        "name": info.name,
        "subresource": info.subresource,
        "namespace": info.namespace,
        "protocol": f"HTTP/{protocol_version(request)}",
        "resource": info.resource,
        "scope": scope_of(info),
        "url": request.path,
        "user-agent": request.header(b"user-agent")[:_LONGEST_AGENT],
        "verb": shown_verb(info.verb),
    }


def protocol_version(request: Request) -> str:
    return "2.0" if request.http_version == "2" else request.http_version


def log_request(request: Request, code: int, seconds: float) -> None:
    """Write what is to be known of a request that was answered, if anything is."""
    if log.isEnabledFor(EACH):
        log_pairs(
            log,
            EACH,
            "HTTP",
            {
                "verb": shown_verb(request.info.verb) if request.info.is_resource else request.method,
                "URI": asked_url(request),
                "latency": _duration(seconds),
                "userAgent": request.header(b"user-agent"),
                "audit-ID": request.audit_id,
                "srcIP": "{}:{}".format(*request.client) if request.client else "",
                "resp": code,
            },
        )
    if seconds > SLOW and request.info.is_resource and not request.info.is_long_running:
        # The server's own calls may wait for its start.
        log.log(_OWN if request.is_own else logging.INFO, "%s", _slow(request, seconds))


def _slow(request: Request, seconds: float) -> str:
    """Return the two lines of a trace of k8s.io/utils/trace that has no steps."""
    name = _SPANS.get(request.info.verb, "Delete")
    fields = ",".join(f"{key}:{value}" for key, value in trace_fields(request).items())
    begun = time.time() - seconds
    at = time.strftime("%d-%b-%Y %H:%M:%S", time.gmtime(begun)) + f".{int(begun % 1 * 1000):03d}"
    trace, took = getrandbits(31), _duration(seconds)
    first = f'Trace[{trace}]: "{name}" {fields} ({at}) (total time: {int(seconds * 1000)}ms):'
    return f"{first}\nTrace[{trace}]: [{took}] [{took}] END"


def _duration(seconds: float) -> str:
    return format_duration(int(seconds * 1e9))
