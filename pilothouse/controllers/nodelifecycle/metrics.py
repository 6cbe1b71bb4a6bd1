"""Metrics of the node lifecycle controller."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from pilothouse.apiserver.tallies import CounterTally, HistogramTally
from pilothouse.controllers.nodelifecycle.zones import ZoneHealth


class NodeLifecycleMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.evictions = CounterTally(
            "node_collector_evictions",
            "Number of Node evictions that happened since current instance of NodeController started.",
            ("zone",),
            registry=registry,
        )
        self.all_nodes = HistogramTally(
            "node_collector_update_all_nodes_health_duration_seconds",
            "Duration in seconds for NodeController to update the health of all nodes.",
            (),
            bounds=[0.01 * 4**step for step in range(8)],
            registry=registry,
        )
        gauges = {
            "zone_health": "Gauge measuring percentage of healthy nodes per zone.",
            "zone_size": "Gauge measuring number of registered Nodes per zones.",
            "unhealthy_nodes_in_zone": "Gauge measuring number of not Ready Nodes per zones.",
        }
        self._health, self._size, self._unhealthy = (
            Gauge(f"node_collector_{name}", message, ["zone"], registry=registry) for name, message in gauges.items()
        )

    def show(self, zone: str, health: ZoneHealth | None) -> None:
        """Set the metrics of a zone; None = the zone has no nodes left."""
        size, unhealthy = (health.size, health.unhealthy) if health else (0, 0)
        self._size.labels(zone).set(size)
        self._unhealthy.labels(zone).set(unhealthy)
        self._health.labels(zone).set(100 * (size - unhealthy) / size if size else 100)
