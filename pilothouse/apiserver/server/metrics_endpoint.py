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
from pilothouse.apiserver.server.metrics_of_many import Families, Peers, Sum, families_of
from pilothouse.apiserver.server.mux import PathRecorderMux
from pilothouse.apiserver.server.registered_metrics import RegisteredMetrics
from pilothouse.apiserver.server.slis import SLI_REGISTRY
from pilothouse.apiserver.server.version import version_info
from pilothouse.machinery.errors import MethodNotAllowed
from pilothouse.machinery.server_errors import METHOD_NOT_ALLOWED

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
_VERSION = Gauge(
    "version_info",
    "[ALPHA] Provides the compatibility version info of the component. The component label is the name of the "
    "component, usually kube, but is relevant for aggregated-apiservers.",
    ["component", "binary", "emulation", "min_compat"],
    registry=REGISTRY,
)
_VERSION.labels(
    "kube",
    version_info()["gitVersion"].removeprefix("v"),
    *(f"{version_info()[f'{of}Major']}.{version_info()[f'{of}Minor']}" for of in ("emulation", "minCompatibility")),
).set(1)

for _name, _about in (
    ("hidden_metrics", "[BETA] The count of hidden metrics."),
    ("disabled_metrics", "[BETA] The count of disabled metrics."),
    (
        "cardinality_enforcement_unexpected_categorizations",
        "[ALPHA] The count of unexpected categorizations during cardinality enforcement.",
    ),
):
    Counter(_name, _about, registry=REGISTRY)  # always 0: there is no flag that would hide or bound any

RegisteredMetrics(REGISTRY)

REGISTRIES = {"metrics": REGISTRY, "slis": SLI_REGISTRY}


def install_metrics(mux: PathRecorderMux, peers: Peers | None = None) -> None:
    mux.handle("/metrics", exposition("metrics", peers))
    mux.handle("/metrics/slis", exposition("slis", peers))


def exposition(name: str, peers: Peers | None = None) -> Handler:
    """Show the registry of that name, with those of the peers added to it."""
    registry = REGISTRIES[name]

    async def answer(request: Request) -> Response:
        if request.method == "DELETE":
            raise MethodNotAllowed(METHOD_NOT_ALLOWED, details={})
        headers = [(b"content-type", CONTENT_TYPE), (b"process-start-time-unix", _STARTED)]
        # In a thread: thousands of series take long enough to be felt by every other request.
        others = await peers.families(name) if peers else []
        if accepts_gzip(request.header(b"accept-encoding")):
            body = await asyncio.to_thread(lambda: gzip.compress(_written(registry, others), _LEVEL, mtime=0))
            return Response(200, body, [*headers, (b"content-encoding", b"gzip")])
        return Response(200, await asyncio.to_thread(_written, registry, others), headers)

    return answer


def _written(registry: CollectorRegistry, others: list[Families]) -> bytes:
    if not others:
        return exposed(registry)
    together = CollectorRegistry()
    together.register(Sum([families_of(registry), *others]))
    return exposed(together)
