"""Metrics of the EndpointSlice controllers."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from prometheus_client import CollectorRegistry, Gauge, Histogram

from pilothouse.controllers.endpointslice.endpoint import PortsKey
from pilothouse.machinery.dataclass import dataclass

_BUCKETS = [2.0 * 2**step for step in range(15)]
_LATENCIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Numbers of endpoints and slices of a port set."""

    endpoints: int
    slices: int


class SliceMetrics:
    """Metrics shared by the endpointslice and endpointslicemirroring controllers."""

    def __init__(self, registry: CollectorRegistry, subsystem: str, synced: str) -> None:
        self._registry, self._subsystem = registry, subsystem
        self.added = self.histogram("endpoints_added_per_sync", f"Number of endpoints added on each {synced} sync")
        self.removed = self.histogram(
            "endpoints_removed_per_sync", f"Number of endpoints removed on each {synced} sync"
        )
        self._desired = self._gauge("endpoints_desired", "Number of endpoints desired")
        self._slices = self._gauge("num_endpoint_slices", "Number of EndpointSlices")
        self._desired_slices = self._gauge(
            "desired_endpoint_slices", "Number of EndpointSlices that would exist with perfect endpoint allocation"
        )
        # Gauges instead of Counters: the library appends _total to counter names.
        self.changes = Gauge(
            "changes", "Number of EndpointSlice changes", ["operation"], subsystem=subsystem, registry=registry
        )

    def per_sync(self, done: str, synced: str) -> Histogram:
        return self.histogram(f"endpoints_{done}_per_sync", f"Number of endpoints {done} on each {synced} sync")

    def histogram(self, name: str, help_text: str, buckets: list[float] = _BUCKETS) -> Histogram:
        return Histogram(name, help_text, subsystem=self._subsystem, buckets=buckets, registry=self._registry)

    def show(self, totals: Totals) -> None:
        self._desired.set(totals.endpoints)
        self._slices.set(totals.slices)
        self._desired_slices.set(totals.desired_slices)

    def _gauge(self, name: str, help_text: str) -> Gauge:
        return Gauge(name, help_text, subsystem=self._subsystem, registry=self._registry)


class ServiceSliceMetrics(SliceMetrics):
    def __init__(self, registry: CollectorRegistry) -> None:
        subsystem = "endpoint_slice_controller"
        super().__init__(registry, subsystem, "Service")
        self.changed_per_sync = Histogram(
            "endpointslices_changed_per_sync",
            "Number of EndpointSlices changed on each Service sync",
            ["topology", "traffic_distribution"],
            subsystem=subsystem,
            buckets=_LATENCIES,
            registry=registry,
        )
        self.syncs = Gauge("syncs", "Number of EndpointSlice syncs", ["result"], subsystem=subsystem, registry=registry)
        self.distributions = Distributions(registry, subsystem)


class Distributions:
    """Number of services per traffic distribution."""

    _of: dict[str, str]  # by service key

    def __init__(self, registry: CollectorRegistry, subsystem: str) -> None:
        self._of = {}
        self._gauge = Gauge(
            "services_count_by_traffic_distribution",
            "Number of Services using some specific trafficDistribution",
            ["traffic_distribution"],
            subsystem=subsystem,
            registry=registry,
        )

    def set(self, service: str, distribution: str) -> None:
        if before := self._of.pop(service, ""):
            self._gauge.labels(before).dec()
        if distribution:
            self._of[service] = distribution
            self._gauge.labels(distribution).inc()


class Totals:
    """Totals over all services."""

    _groups: dict[str, dict[str, Mapping[PortsKey, Efficiency]]]  # by service key and address type

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._groups = {}
        self.endpoints = self.slices = self.desired_slices = 0

    def set(self, service: str, address_type: str, groups: Mapping[PortsKey, Efficiency]) -> None:
        by_type = self._groups.setdefault(service, {})
        self._count(by_type.get(address_type), -1)
        by_type[address_type] = groups
        self._count(groups, 1)

    def forget(self, service: str) -> None:
        for groups in self._groups.pop(service, {}).values():
            self._count(groups, -1)

    def _count(self, groups: Mapping[PortsKey, Efficiency] | None, sign: int) -> None:
        if groups is None:
            return
        self.endpoints += sign * sum(group.endpoints for group in groups.values())
        self.slices += sign * sum(group.slices for group in groups.values())
        # A service without endpoints has one empty slice.
        needed = sum(ceil(group.endpoints / self._limit) for group in groups.values())
        self.desired_slices += sign * (needed or 1)
