"""The metrics of aggregated discovery, under upstream's names. Without peers, those about them stay at zero."""

from __future__ import annotations

from prometheus_client import Counter

from pilothouse.apiserver.metrics import REGISTRY

_SUBSYSTEM = "aggregator_discovery"


def _counter(name: str, what: str) -> Counter:
    return Counter(name, f"[ALPHA] {what}", subsystem=_SUBSYSTEM, registry=REGISTRY)


AGGREGATIONS = _counter("aggregation_count", "Counter of number of times discovery was aggregated")
NO_PEER_REQUESTS = _counter(
    "nopeer_requests", "Counter of number of times no-peer (non peer-aggregated) discovery was requested"
)
_counter("peer_aggregated_cache_hits", "Counter of number of times discovery was served from peer-aggregated cache")
_counter("peer_aggregated_cache_misses", "Counter of number of times discovery was aggregated across all API servers")
