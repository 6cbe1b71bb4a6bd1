"""Request metrics: counts, durations and sizes by resource and verb.

Labels come from installed routes only, as upstream: requests without a route are counted without labels, so that
clients cannot create series.
"""

from __future__ import annotations

import time
from functools import partial

from prometheus_client import Gauge

from pilothouse.apiserver.authn.user import API_SERVER_USER
from pilothouse.apiserver.external_latency import begin_external_latency, end_external_latency
from pilothouse.apiserver.filters.metrics import (
    DURATION,
    LONG_RUNNING,
    REQUESTS,
    RESPONSE_SIZES,
    SELF_REQUESTS,
    SLI_DURATION,
)
from pilothouse.apiserver.filters.request_log import EACH, OTHER, SLOW, log, log_request, scope_of, shown_verb
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.streams import UntilEnd
from pilothouse.apiserver.tallies import Count, Labels
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.status_error import StatusError


class _Series:
    """The series of one kind of request, looked up once."""

    __slots__ = ("_by_code", "_labels", "duration", "labels", "sizes", "sli")

    def __init__(self, labels: Labels, dry_run: str) -> None:
        self.labels = labels
        self._labels = (*labels, dry_run)
        self._by_code: dict[int, Count] = {}
        self.duration = DURATION.row(self._labels)
        self.sli = SLI_DURATION.row(labels) if labels[3] and not dry_run else None
        """Only for stored resources and real writes."""
        self.sizes = RESPONSE_SIZES.row(labels)

    def count(self, code: int) -> None:
        known = self._by_code.get(code)
        if known is None:
            known = self._by_code[code] = REQUESTS.row((*self._labels, str(code)))
        known.value += 1


_SERIES: BoundedCache[Labels, _Series] = BoundedCache(entries=4096, total_bytes=8 << 20)


def with_request_metrics(handler: Handler) -> Handler:
    async def measure(request: Request) -> Response:
        start, code = time.perf_counter(), 500
        token, foreign = begin_external_latency()
        lasts = False
        try:
            response = await handler(request)
            code = response.status
            lasts = request.info.is_long_running and not isinstance(response.body, bytes)
        except StatusError as error:
            code = error.code
            raise
        finally:
            taken = time.perf_counter() - start
            end_external_latency(token)
            series = _series_of(request)
            series.count(code)
            series.duration.observe(taken)
            if series.sli is not None:
                series.sli.observe(taken - foreign.total)
            if request.user is not None and request.user.name == API_SERVER_USER:
                verb, group, _, resource, subresource, *_ = series.labels
                SELF_REQUESTS.inc((verb, group, resource, subresource))
            if not lasts and (taken > SLOW or log.isEnabledFor(EACH)):
                log_request(request, code, taken)
        if isinstance(response.body, bytes):
            series.sizes.observe(len(response.body))
        elif lasts:
            # A long-running request lasts as long as its stream.
            gauge = LONG_RUNNING.labels(*series.labels)
            gauge.inc()
            end = partial(_logged_end, gauge, request, code, start) if log.isEnabledFor(EACH) else gauge.dec
            response.body = UntilEnd(response.body, end)
        return response

    return measure


def _logged_end(gauge: Gauge, request: Request, code: int, start: float) -> None:
    gauge.dec()
    log_request(request, code, time.perf_counter() - start)


def _series_of(request: Request) -> _Series:
    info, dry_run = request.info, "All" if "dryRun" in request.query_string else ""
    if request.is_routed:
        key = (info.verb, info.group, info.version, info.resource, info.subresource, scope_of(info), dry_run)
    else:
        key = (info.verb if shown_verb(info.verb) != OTHER else "", "", "", "", "", "", dry_run)
    series = _SERIES.get(key)
    if series is None:
        verb, *where, _ = key
        series = _Series((shown_verb(verb), *where, "apiserver"), dry_run)
        _SERIES.put(key, series, size=1024 + sum(map(len, key)))
    return series
