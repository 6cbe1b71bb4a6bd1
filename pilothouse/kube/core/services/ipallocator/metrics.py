"""How many addresses of each range are taken, and how taking them went."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Counter, Gauge, Histogram

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.kube.core.services.ipallocator.address_range import AddressRange
from pilothouse.kube.core.services.ipallocator.errors import AllocationError

STATIC = "static"
DYNAMIC = "dynamic"
"""Whether the client named the address."""

_PREFIX = "kube_apiserver_clusterip_allocator"
_ALLOCATED = Gauge(
    f"{_PREFIX}_allocated_ips",
    "[ALPHA] Gauge measuring the number of allocated IPs for Services",
    ("cidr",),
    registry=REGISTRY,
)
_AVAILABLE = Gauge(
    f"{_PREFIX}_available_ips",
    "[ALPHA] Gauge measuring the number of available IPs for Services",
    ("cidr",),
    registry=REGISTRY,
)
_ALLOCATIONS = Counter(
    f"{_PREFIX}_allocation", "[ALPHA] Number of Cluster IPs allocations", ("cidr", "scope"), registry=REGISTRY
)
_ERRORS = Counter(
    f"{_PREFIX}_allocation_errors", "Addresses that could not be allocated.", ("cidr", "scope"), registry=REGISTRY
)
_DURATION = Histogram(
    f"{_PREFIX}_allocation_duration_seconds",
    "[ALPHA] Duration in seconds to allocate a Cluster IP by ServiceCIDR",
    ("cidr",),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    registry=REGISTRY,
)


@contextmanager
def measured(each: AddressRange, scope: str) -> Iterator[None]:
    """Count the block as one allocation from the range, as a failed one if it raises."""
    try:
        with _DURATION.labels(each.cidr).time():
            yield
    except AllocationError:
        _ERRORS.labels(each.cidr, scope).inc()
        raise
    _ALLOCATIONS.labels(each.cidr, scope).inc()
    _ALLOCATED.labels(each.cidr).inc()
    _AVAILABLE.labels(each.cidr).dec()


def released(each: AddressRange) -> None:
    _ALLOCATED.labels(each.cidr).dec()
    _AVAILABLE.labels(each.cidr).inc()


def counted(each: AddressRange, taken: int) -> None:
    """The truth, whatever others have allocated and released since."""
    _ALLOCATED.labels(each.cidr).set(taken)
    _AVAILABLE.labels(each.cidr).set(each.size - taken)
