"""How many node ports are taken, how taking them went, and what the repair found."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.kube.core.services.portallocator.port_set import PortSet

STATIC = "static"
DYNAMIC = "dynamic"
"""Whether the client named the port."""

_PREFIX = "kube_apiserver_nodeport_allocator"
_ALLOCATED = Gauge(f"{_PREFIX}_allocated_ports", "Node ports that services have.", registry=REGISTRY)
_AVAILABLE = Gauge(f"{_PREFIX}_available_ports", "Node ports that are free.", registry=REGISTRY)
ALLOCATIONS = Counter(f"{_PREFIX}_allocation", "Node ports that were allocated.", ("scope",), registry=REGISTRY)
ALLOCATION_ERRORS = Counter(
    f"{_PREFIX}_allocation_errors", "Node ports that could not be allocated.", ("scope",), registry=REGISTRY
)
REPAIR_PORT_ERRORS = Counter(
    "apiserver_nodeport_repair_port_errors", "Wrong node ports that the repair found.", ("type",), registry=REGISTRY
)
REPAIR_ERRORS = Counter(
    "apiserver_nodeport_repair_reconcile_errors", "Repairs of node ports that failed.", registry=REGISTRY
)


def counted(taken: PortSet) -> None:
    _ALLOCATED.set(len(taken))
    _AVAILABLE.set(len(taken.ports) - len(taken))
