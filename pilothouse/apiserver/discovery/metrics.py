"""The metrics of aggregated discovery, under upstream's names. Without peers, those about them stay at zero."""

from __future__ import annotations

from prometheus_client import Counter

from pilothouse.apiserver.metrics import REGISTRY

_SUBSYSTEM = "aggregator_discovery"


def _counter(name: str, what: str) -> Counter:
    return Counter(name, f"[ALPHA] {what}", subsystem=_SUBSYSTEM, registry=REGISTRY)


AGGREGATIONS = _counter("aggregation_count", "How often the document of all groups was made.")
NO_PEER_REQUESTS = _counter("nopeer_requests", "Requests for what this server alone knows.")
_counter("peer_aggregated_cache_hits", "Requests answered from the cache of what all peers know.")
_counter("peer_aggregated_cache_misses", "Requests for which what all peers know had to be put together.")
