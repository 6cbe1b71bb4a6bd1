"""/metrics and /metrics/slis: the registries as Prometheus text."""

from __future__ import annotations

import asyncio
import gzip
import time

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, disable_created_metrics

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.serve_content import accepts_gzip
from pilothouse.apiserver.server.exposition import exposed
from pilothouse.apiserver.server.mux import PathRecorderMux
from pilothouse.apiserver.server.slis import SLI_REGISTRY
from pilothouse.apiserver.server.version import version_info
from pilothouse.machinery.errors import MethodNotAllowed
from pilothouse.machinery.server_response import METHOD_NOT_ALLOWED

_LEVEL = 1
_STARTED = str(int(time.time())).encode()
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

disable_created_metrics()  # type: ignore[no-untyped-call]  # upstream's counters have no _created series
ProcessCollector(registry=REGISTRY)

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

for _name, _about in (
    ("hidden_metrics", "[BETA] The count of hidden metrics."),
    ("disabled_metrics", "[BETA] The count of disabled metrics."),
    (
        "cardinality_enforcement_unexpected_categorizations",
        "[ALPHA] The count of unexpected categorizations during cardinality enforcement.",
    ),
):
    Counter(_name, _about, registry=REGISTRY)  # always 0: there is no flag that would hide or bound any


def install_metrics(mux: PathRecorderMux) -> None:
    mux.handle("/metrics", exposition(REGISTRY))
    mux.handle("/metrics/slis", exposition(SLI_REGISTRY))


def exposition(registry: CollectorRegistry) -> Handler:
    async def answer(request: Request) -> Response:
        if request.method == "DELETE":
            raise MethodNotAllowed(METHOD_NOT_ALLOWED, details={})
        headers = [(b"content-type", CONTENT_TYPE), (b"process-start-time-unix", _STARTED)]
        # In a thread: thousands of series take long enough to be felt by every other request.
        if accepts_gzip(request.header(b"accept-encoding")):
            body = await asyncio.to_thread(lambda: gzip.compress(exposed(registry), _LEVEL, mtime=0))
            return Response(200, body, [*headers, (b"content-encoding", b"gzip")])
        return Response(200, await asyncio.to_thread(exposed, registry), headers)

    return answer
