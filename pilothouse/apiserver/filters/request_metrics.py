"""Request metrics: counts, durations and sizes by what was asked for.

Labels come from installed routes only, as upstream's do: what is refused before it has found its route is counted
without them, so that nobody can make up series.
"""

from __future__ import annotations

import time

from pilothouse.apiserver.filters.long_running import is_long_running
from pilothouse.apiserver.filters.metrics import DURATION, LONG_RUNNING, REQUESTS, RESPONSE_SIZES
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.streams import UntilEnd
from pilothouse.apiserver.tallies import Labels
from pilothouse.machinery.errors import StatusError

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


def with_request_metrics(handler: Handler) -> Handler:
    async def measure(request: Request) -> Response:
        dry_run = "All" if "dryRun" in request.query_string else ""
        start, code = time.perf_counter(), 500
        try:
            response = await handler(request)
            code = response.status
        except StatusError as error:
            code = error.code
            raise
        finally:
            labels = _labels(request)
            REQUESTS.inc((*labels, dry_run, str(code)))
            DURATION.observe((*labels, dry_run), time.perf_counter() - start)
        if isinstance(response.body, bytes):
            RESPONSE_SIZES.observe(labels, len(response.body))
        elif is_long_running(request.info):
            # A long-running request lasts as long as its stream.
            gauge = LONG_RUNNING.labels(*labels)
            gauge.inc()
            response.body = UntilEnd(response.body, gauge.dec)
        return response

    return measure


def _labels(request: Request) -> Labels:
    info = request.info
    verb = _SHOWN.get(info.verb, "other")
    if not request.is_routed:
        return (verb, "", "", "", "", "", "apiserver")
    scope = "resource" if len(info.parts) > 1 else "namespace" if info.namespace else "cluster"
    return (verb, info.group, info.version, info.resource, info.subresource, scope, "apiserver")
