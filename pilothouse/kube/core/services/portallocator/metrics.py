"""How many node ports are taken, how taking them went, and what the repair found."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.kube.core.services.portallocator.port_set import PortSet

STATIC = "static"
DYNAMIC = "dynamic"
"""Whether the client named the port."""

_PREFIX = "kube_apiserver_nodeport_allocator"
_ALLOCATED = Gauge(
    f"{_PREFIX}_allocated_ports",
    "[ALPHA] Gauge measuring the number of allocated NodePorts for Services",
    registry=REGISTRY,
)
_AVAILABLE = Gauge(
    f"{_PREFIX}_available_ports",
    "[ALPHA] Gauge measuring the number of available NodePorts for Services",
    registry=REGISTRY,
)
ALLOCATIONS = Counter(f"{_PREFIX}_allocation", "[ALPHA] Number of NodePort allocations", ("scope",), registry=REGISTRY)
ALLOCATION_ERRORS = Counter(
    f"{_PREFIX}_allocation_errors",
    "[ALPHA] Number of errors trying to allocate NodePort",
    ("scope",),
    registry=REGISTRY,
)
REPAIR_PORT_ERRORS = Counter(
    "apiserver_nodeport_repair_port_errors",
    "[ALPHA] Number of errors detected on ports by the repair loop broken down by type of error: leak, "
    "repair, full, outOfRange, duplicate, unknown",
    ("type",),
    registry=REGISTRY,
)
REPAIR_ERRORS = Counter(
    "apiserver_nodeport_repair_reconcile_errors",
    "[ALPHA] Number of reconciliation failures on the nodeport repair reconcile loop",
    registry=REGISTRY,
)


def counted(taken: PortSet) -> None:
    _ALLOCATED.set(len(taken))
    _AVAILABLE.set(len(taken.ports) - len(taken))
