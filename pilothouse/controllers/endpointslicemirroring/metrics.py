"""Metrics of the endpointslicemirroring controller."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from pilothouse.controllers.endpointslice.metrics import SliceMetrics

_SECONDS = [0.001 * 2**step for step in range(15)]


class MirroringMetrics(SliceMetrics):
    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry, "endpoint_slice_mirroring_controller", "Endpoints")
        self.updated = self.per_sync("updated", "Endpoints")
        self.skipped = self.histogram(
            "addresses_skipped_per_sync",
            "Number of addresses skipped on each Endpoints sync"
            " due to being invalid or exceeding MaxEndpointsPerSubset",
        )
        self.duration = self.histogram("endpoints_sync_duration", "Duration of syncEndpoints() in seconds", _SECONDS)
