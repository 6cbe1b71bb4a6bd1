"""The few figures of the page, from the cluster's /metrics: `/console/metrics`.

/metrics of a busy server has megabytes, and each read is work for the server. The console reads /metrics at most once
per period for all tabs, and returns about a kilobyte. Requests of the console itself are not counted.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any, Final

from pilothouse.apiserver.http import Response, raw_json
from pilothouse.client.rest.http_transport import HttpTransport
from pilothouse.client.rest.transport import HttpRequest

PATH: Final = "/console/metrics"
_PERIOD: Final = 4.0
_SUMS: Final = {
    "apiserver_current_inflight_requests": "inFlight",
    "apiserver_flowcontrol_current_inqueue_requests": "queued",
    "apiserver_resource_objects": "objects",
    "apiserver_storage_objects": "storageObjects",
    "apiserver_storage_size_bytes": "storageBytes",
    "apiserver_admission_webhook_fail_open_count": "webhookFailOpen",
    "apiserver_admission_webhook_rejection_count": "webhookRejections",
    "workqueue_depth": "workqueueDepth",
    "process_resident_memory_bytes": "memoryBytes",
    "process_cpu_seconds_total": "cpuSeconds",
}
_REQUESTS: Final = "apiserver_request_total"
_LATENCY: Final = "apiserver_request_duration_seconds_bucket"
_LONG_RUNNING: Final = "apiserver_longrunning_requests"
_NAMES: Final = (*_SUMS, _REQUESTS, _LATENCY, _LONG_RUNNING)
_SAMPLE: Final = re.compile(r"([a-z_]+)(?:\{(.*)\})? (\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_OWN: Final = re.compile(r'="/(metrics|debug/requests)[^"]*"')


class ClusterMetrics:
    """Figures of one cluster. Concurrent readers share one request."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport
        self._lock = asyncio.Lock()
        self._read_at = -_PERIOD
        self._status = 200
        self._figures: dict[str, Any] = {}

    async def answer(self) -> Response:
        """Return the figures; the status of the cluster if the cluster refuses. Raises ConnectionFailed."""
        async with self._lock:
            if time.monotonic() - self._read_at >= _PERIOD:
                await self._read()
        return raw_json(self._status, self._figures)

    async def _read(self) -> None:
        response = await self._transport.send(HttpRequest("GET", "/metrics", {}, b""))
        try:
            body = b"".join([chunk async for chunk in response.chunks()])
        finally:
            await response.close()
        self._status, self._read_at = response.status, time.monotonic()
        if response.status == 200:
            self._figures = {"at": time.time(), **figures(body.decode(errors="replace"))}
        else:
            self._figures = {"message": body.decode(errors="replace")[:1000], "code": response.status}


def figures(text: str) -> dict[str, Any]:
    """Reduce the exposition format to sums; `latency` has cumulative counts by upper bound, without watches."""
    sums = dict.fromkeys([*_SUMS.values(), "requests", "failed", "serverErrors", "watches"], 0.0)
    latency: dict[str, float] = {}
    for line in text.split("\n"):
        if not line.startswith(_NAMES) or _OWN.search(line):
            continue
        sample = _SAMPLE.match(line)
        if sample is None:
            continue
        name, labels, value = sample[1], sample[2] or "", float(sample[3])
        if name in _SUMS:
            sums[_SUMS[name]] += value
        elif name == _REQUESTS:
            code = dict(_LABEL.findall(labels)).get("code", "")
            sums["requests"] += value
            sums["failed"] += value * code.startswith(("4", "5"))
            sums["serverErrors"] += value * code.startswith("5")
        elif name == _LONG_RUNNING and 'verb="WATCH"' in labels:
            sums["watches"] += value
        elif name == _LATENCY and 'verb="WATCH"' not in labels and 'verb="CONNECT"' not in labels:
            bound = dict(_LABEL.findall(labels)).get("le", "")
            latency[bound] = latency.get(bound, 0.0) + value
    return {**sums, "latency": latency}
