"""/metrics and /metrics/slis: the registries as Prometheus text."""

from __future__ import annotations

import asyncio
import re

from prometheus_client import CollectorRegistry, Gauge, Metric, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.server.mux import PathRecorderMux
from pilothouse.apiserver.server.slis import SLI_REGISTRY
from pilothouse.apiserver.server.version import version_info
from pilothouse.machinery.errors import MethodNotAllowed
from pilothouse.machinery.server_response import METHOD_NOT_ALLOWED

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

disable_created_metrics()  # type: ignore[no-untyped-call]  # upstream's counters have no _created series
ProcessCollector(registry=REGISTRY)

_WHOLE = re.compile(rb'(?<=[0-9])\.0$|(?<=[0-9])\.0(?="} )', re.MULTILINE)
"""What Go leaves out behind a value, and behind the bound of a bucket, which is the last of its labels."""

_BUILD_LABELS = {
    "build_date": "buildDate",
    "compiler": "compiler",
    "git_commit": "gitCommit",
    "git_tree_state": "gitTreeState",
    "git_version": "gitVersion",
    "go_version": "goVersion",
    "major": "major",
    "minor": "minor",
    "platform": "platform",
}
_BUILD_INFO = Gauge(
    "kubernetes_build_info", "[ALPHA] Always 1; the labels say what runs.", list(_BUILD_LABELS), registry=REGISTRY
)
_BUILD_INFO.labels(*(version_info()[field] for field in _BUILD_LABELS.values())).set(1)


def install_metrics(mux: PathRecorderMux) -> None:
    mux.handle("/metrics", exposition(REGISTRY))
    mux.handle("/metrics/slis", exposition(SLI_REGISTRY))


def exposition(registry: CollectorRegistry) -> Handler:
    async def answer(request: Request) -> Response:
        if request.method == "DELETE":
            raise MethodNotAllowed(METHOD_NOT_ALLOWED, details={})
        # In a thread: thousands of series take long enough to be felt by every other request.
        body = await asyncio.to_thread(_exposed, registry)
        return Response(200, body, [(b"content-type", CONTENT_TYPE)])

    return answer


def _exposed(registry: CollectorRegistry) -> bytes:
    """Return all series in the order of their families' names, with whole numbers as Go prints them."""
    return _WHOLE.sub(b"", generate_latest(_ByName(registry)))


class _ByName(Collector):
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> list[Metric]:
        return sorted(self._registry.collect(), key=_family)


def _family(metric: Metric) -> str:
    return f"{metric.name}_total" if metric.type == "counter" else metric.name
