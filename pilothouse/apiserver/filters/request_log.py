"""Request log: every request from -v=3, slow requests at any verbosity, with the audit id of the request."""

from __future__ import annotations

import logging
import time
from random import getrandbits
from typing import Final

from pilothouse.apiserver.filters.internal_error import asked_url
from pilothouse.apiserver.http import Request, source_ips
from pilothouse.apiserver.logs import log_pairs, v
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.machinery.durations import format_duration

SLOW: Final = 0.5
"""Threshold of slow requests in seconds, as upstream."""
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
    """Return the scope of a request. A create concerns one object, although its path has no name."""
    if len(info.parts) > 1 or info.verb == "create":
        return "resource"
    return "namespace" if info.namespace else "cluster"


def trace_fields(request: Request) -> dict[str, str]:
    """Return the attributes of a request for spans and for the log of slow requests."""
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
    """Log a completed request if the verbosity or its duration requires that."""
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
        # The server's own requests may wait for its start.
        # A trace without steps, in the format of k8s.io/utils/trace.
        name = _SPANS.get(request.info.verb, "Delete")
        fields = ",".join(f"{key}:{value}" for key, value in trace_fields(request).items())
        begun = time.time() - seconds
        at = time.strftime("%d-%b-%Y %H:%M:%S", time.gmtime(begun)) + f".{int(begun % 1 * 1000):03d}"
        trace, took = getrandbits(31), _duration(seconds)
        first = f'Trace[{trace}]: "{name}" {fields} ({at}) (total time: {int(seconds * 1000)}ms):'
        log.log(_OWN if request.is_own else logging.INFO, "%s", f"{first}\nTrace[{trace}]: [{took}] [{took}] END")


def _duration(seconds: float) -> str:
    return format_duration(int(seconds * 1e9))
