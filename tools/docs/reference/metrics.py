"""The metrics, from the registry of a server that runs."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.testing import Server
from tools.docs.reference.markdown import cell, code, page, table

_TESTED = (
    "the page is generated from the registry of a running server; `tests/docs/test_reference.py` compares the page."
)


def metrics_page() -> str:
    with Server(simulated_nodes=1):
        found = {name: row for collector in _collectors() for name, row in _families(collector)}
    rows = [found[name] for name in sorted(found)]
    about = (
        f"`GET /metrics` exports {len(rows)} metrics in Prometheus' text format, under kube-apiserver's names where"
        " upstream has the metric. The word in brackets is upstream's stability level."
    )
    return page("Metrics", about, table(["name", "type", "labels", ""], rows), tested=_TESTED)


def _collectors() -> list[Collector]:
    return list(REGISTRY._collector_to_names)


def _families(collector: Collector) -> Iterator[tuple[str, list[str]]]:
    described = list(collector.describe()) if hasattr(collector, "describe") else []
    for family in described or collector.collect():
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = ", ".join(map(code, _labels(collector, family)))
        yield name, [code(name), cell(family.type).replace("unknown", "counter"), labels, family.documentation]


def _labels(collector: Collector, family: Metric) -> list[str]:
    """Return the names of labels: those that were declared, or those that samples have."""
    for of in (family, collector):
        for attribute in ("_labelnames", "_labels"):
            if names := getattr(of, attribute, ()):
                return list(names)
    return list(dict.fromkeys(label for sample in family.samples for label in sample.labels))
