"""/metrics and /metrics/slis: metric registries in the Prometheus text format."""

from __future__ import annotations

import asyncio
import gzip
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, disable_created_metrics
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from pilothouse.apiserver.http import Handler, Request, Response, text
from pilothouse.apiserver.serve_content import accepts_gzip
from pilothouse.apiserver.server.health import SLI_REGISTRY, forget_health_checks
from pilothouse.apiserver.server.metrics_of_many import Families, Peers, Sum, families_of
from pilothouse.apiserver.server.mux import PathRecorderMux
from pilothouse.apiserver.tallies import REGISTRY
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
_VERSION = Gauge(
    "version_info",
    "[ALPHA] Provides the compatibility version info of the component. The component label is the name of the "
    "component, usually kube, but is relevant for aggregated-apiservers.",
    ["component", "binary", "emulation", "min_compat"],
    registry=REGISTRY,
)

for _name, _about in (
    ("hidden_metrics", "[BETA] The count of hidden metrics."),
    ("disabled_metrics", "[BETA] The count of disabled metrics."),
    (
        "cardinality_enforcement_unexpected_categorizations",
        "[ALPHA] The count of unexpected categorizations during cardinality enforcement.",
    ),
):
    Counter(_name, _about, registry=REGISTRY)  # always 0: no flag hides or limits metrics


REGISTRIES = {"metrics": REGISTRY, "slis": SLI_REGISTRY}


def install_metrics(mux: PathRecorderMux, peers: Peers | None, version: Mapping[str, str]) -> None:
    """Install the endpoints. `version` has the fields of /version, which become metrics of this process."""
    _BUILD_INFO.labels(*(version[field] for field in _BUILD_LABELS.values())).set(1)
    others = (f"{version[f'{of}Major']}.{version[f'{of}Minor']}" for of in ("emulation", "minCompatibility"))
    _VERSION.clear()  # of an earlier server in this process
    _VERSION.labels("kube", version["gitVersion"].removeprefix("v"), *others).set(1)
    mux.handle("/metrics", exposition("metrics", peers))
    mux.handle("/metrics/slis", exposition("slis", peers))


def exposition(name: str, peers: Peers | None = None) -> Handler:
    """Return the handler of the registry with this name, with the metrics of the peers added.

    DELETE resets the results of health checks in this process, and is refused for other metrics.
    """
    registry = REGISTRIES[name]

    async def answer(request: Request) -> Response:
        if request.method == "DELETE" and registry is SLI_REGISTRY:
            forget_health_checks()
            return text(200, "metrics reset\n")
        if request.method == "DELETE":
            raise MethodNotAllowed(METHOD_NOT_ALLOWED, details={})
        headers = [(b"content-type", CONTENT_TYPE), (b"process-start-time-unix", _STARTED)]
        # In a thread: thousands of series would delay all other requests.
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


_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})
_TYPES = {"unknown": "counter"}
"""The library recognizes counters by the suffix `_total`; older counters have no type there."""


def exposed(registry: CollectorRegistry) -> bytes:
    """Return the registry in the text format as Go writes it: sorted families, labels and series, shortest numbers."""
    families = sorted(
        (
            ((f"{family.name}_total" if family.type == "counter" else family.name), family)
            for family in registry.collect()
        ),
        key=lambda named: named[0],
    )
    return "".join(part for name, family in families for part in _family(name, family)).encode()


def _family(name: str, family: Metric) -> Iterator[str]:
    """Yield the lines of a family; none for a family without series, as in Go."""
    if family.samples:
        yield f"# HELP {name} {family.documentation.translate(_HELP_ESCAPES)}\n"
        yield f"# TYPE {name} {_TYPES.get(family.type, family.type)}\n"
        counts = f"{name}_count" if family.type in ("histogram", "summary") else ""
        yield from (_line(sample) for sample in _in_order(family.samples, counts))


def _in_order(samples: Iterable[Sample], counts: str) -> list[Sample]:
    """Sort the samples; keep each histogram together: buckets, sum, count."""

    def place(sample: Sample) -> tuple[list[tuple[str, str]], bool]:
        return [item for item in sorted(sample.labels.items()) if item[0] != "le"], sample.name == counts

    return sorted(samples, key=place)


def _line(sample: Sample) -> str:
    labels = sorted(sample.labels.items(), key=lambda item: (item[0] == "le", item[0]))
    written = ",".join(
        f'{name}="{(number(float(value)) if name == "le" else value.translate(_ESCAPES))}"' for name, value in labels
    )
    return (
        f"{sample.name}{{{written}}} {number(sample.value)}\n" if written else f"{sample.name} {number(sample.value)}\n"
    )


def number(value: float) -> str:
    """Format like Go's %g with the fewest exact digits: 2, 0.005, 1.5e+06, +Inf."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    shortest = repr(float(value))
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return shortest.removesuffix(".0")
    digits = shortest.lstrip("-").partition("e")[0].replace(".", "").strip("0")
    exponent = Decimal(shortest).adjusted()
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{'-' * (value < 0)}{digits[0]}{fraction}e{exponent:+03d}"


_STAGES = ("ALPHA", "BETA", "STABLE")


class RegisteredMetrics(Collector):
    """Counts metric families by the stability level at the start of their help text: [STABLE] and so on."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        registry.register(self)

    def describe(self) -> Iterator[Metric]:
        yield self._family()

    def collect(self) -> Iterator[Metric]:
        family = self._family()
        known = {metric.name: metric.documentation for metric in self._described()}
        for stage in _STAGES:
            family.add_metric([stage, ""], sum(about.startswith(f"[{stage}]") for about in known.values()))
        yield family

    def _described(self) -> Iterator[Metric]:
        for collector in dict.fromkeys(self._registry._names_to_collectors.values()):
            describe: Callable[[], Iterable[Metric]] | None = getattr(collector, "describe", None)
            yield from describe() if describe is not None else ()

    def _family(self) -> CounterMetricFamily:
        about = "[BETA] The count of registered metrics broken by stability level and deprecation version."
        return CounterMetricFamily("registered_metrics", about, labels=["stability_level", "deprecated_version"])


RegisteredMetrics(REGISTRY)
