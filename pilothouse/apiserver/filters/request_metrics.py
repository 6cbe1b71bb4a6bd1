"""Request metrics: counts and durations by what was asked for. Children are looked up once per kind of request."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import NamedTuple

from prometheus_client import Counter, Gauge, Histogram

from pilothouse.apiserver.filters.long_running import is_long_running
from pilothouse.apiserver.filters.metrics import DURATION, LONG_RUNNING, REQUESTS, RESPONSE_SIZES
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.machinery.errors import StatusError

_VERBS = frozenset(("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy"))
_SHOWN = {"create": "POST", "update": "PUT"}


class _Kind(NamedTuple):
    """The labels of a request."""

    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    scope: str


class _Meters(NamedTuple):
    duration: Histogram
    sizes: Histogram
    long_running: Gauge


def with_request_metrics(handler: Handler) -> Handler:
    async def measure(request: Request) -> Response:
        kind, dry_run = _kind(request.info), "All" if "dryRun" in request.query_string else ""
        meters, start, code = _meters(kind, dry_run), time.perf_counter(), 500
        try:
            response = await handler(request)
            code = response.status
        except StatusError as error:
            code = error.code
            raise
        finally:
            _counter(kind, dry_run, code).inc()
            meters.duration.observe(time.perf_counter() - start)
        if isinstance(response.body, bytes):
            meters.sizes.observe(len(response.body))
        elif is_long_running(request.info):
            response.body = _counted(response.body, meters.long_running)
        return response

    return measure


async def _counted(stream: AsyncIterator[bytes], gauge: Gauge) -> AsyncIterator[bytes]:
    """A long-running request lasts as long as its stream."""
    gauge.inc()
    try:
        async for chunk in stream:
            yield chunk
    finally:
        gauge.dec()
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


def _kind(info: RequestInfo) -> _Kind:
    verb = info.verb if info.verb in _VERBS else "other"
    verb = _SHOWN.get(verb, verb.upper())
    if not info.is_resource:
        return _Kind(verb, "", "", "", "", "")
    scope = "resource" if len(info.parts) > 1 else "namespace" if info.namespace else "cluster"
    return _Kind(verb, info.group, info.version, info.resource, info.subresource, scope)


# Unknown resources are client input: the caches are bounded, and so is what one client can make us keep.
@lru_cache(maxsize=4096)
def _meters(kind: _Kind, dry_run: str) -> _Meters:
    labels = {**kind._asdict(), "component": "apiserver"}
    return _Meters(
        DURATION.labels(dry_run=dry_run, **labels), RESPONSE_SIZES.labels(**labels), LONG_RUNNING.labels(**labels)
    )


@lru_cache(maxsize=16384)
def _counter(kind: _Kind, dry_run: str, code: int) -> Counter:
    return REQUESTS.labels(dry_run=dry_run, code=str(code), component="apiserver", **kind._asdict())
