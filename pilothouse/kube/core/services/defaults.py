"""The defaults of services."""

from __future__ import annotations

from pilothouse.kube.core.services.traits import (
    CLUSTER_IP,
    LOAD_BALANCER,
    NODE_PORT,
    is_externally_accessible,
    ports_of,
    type_of,
)
from pilothouse.machinery.objects import Json

AFFINITY_SECONDS = 10800


def default_service(service: Json) -> None:
    spec = service["spec"]
    _default_affinity(spec)
    spec["type"] = spec.get("type") or CLUSTER_IP
    for port in ports_of(service):
        port["protocol"] = port.get("protocol") or "TCP"
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port") or 0
    if is_externally_accessible(service) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec.get("internalTrafficPolicy") is None and type_of(service) in (CLUSTER_IP, NODE_PORT, LOAD_BALANCER):
        spec["internalTrafficPolicy"] = "Cluster"
    if type_of(service) == LOAD_BALANCER:
        _default_load_balancer(service)


def _default_affinity(spec: Json) -> None:
    affinity = spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}


def _default_load_balancer(service: Json) -> None:
    if service["spec"].get("allocateLoadBalancerNodePorts") is None:
        service["spec"]["allocateLoadBalancerNodePorts"] = True
    for point in ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
        if point.get("ip") and point.get("ipMode") is None:
            point["ipMode"] = "VIP"
