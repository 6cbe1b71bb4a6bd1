"""Predicates and accessors of services."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.objects import Json

CLUSTER_IP = "ClusterIP"
NODE_PORT = "NodePort"
LOAD_BALANCER = "LoadBalancer"
EXTERNAL_NAME = "ExternalName"
TYPES = (CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT)

NO_ADDRESS = "None"
"""clusterIP of a headless service."""

SINGLE_STACK = "SingleStack"
PREFER_DUAL_STACK = "PreferDualStack"
REQUIRE_DUAL_STACK = "RequireDualStack"


def type_of(service: Json) -> str:
    return service["spec"].get("type") or ""


def cluster_ip_of(service: Json) -> str:
    return service["spec"].get("clusterIP") or ""


def cluster_ips_of(service: Json) -> list[str]:
    return service["spec"].get("clusterIPs") or []


def ip_families_of(service: Json) -> list[str]:
    return service["spec"].get("ipFamilies") or []


def ip_family_policy_of(service: Json) -> str:
    return service["spec"].get("ipFamilyPolicy") or ""


def ports_of(service: Json) -> list[Json]:
    return service["spec"].get("ports") or []


def node_ports_of(service: Json) -> list[int]:
    return [port["nodePort"] for port in ports_of(service) if port.get("nodePort")]


def health_check_port_of(service: Json) -> int:
    return service["spec"].get("healthCheckNodePort") or 0


def set_or_drop(spec: Json, field: str, value: Any) -> None:
    """Set the field, or drop an empty field."""
    if value:
        spec[field] = value
    else:
        spec.pop(field, None)


def needs_cluster_ip(service: Json) -> bool:
    return type_of(service) != EXTERNAL_NAME


def has_node_ports(service: Json) -> bool:
    """Report whether the type of the service has node ports."""
    return type_of(service) in (NODE_PORT, LOAD_BALANCER)


def gets_node_ports(service: Json) -> bool:
    """Report whether the service gets node ports by dynamic allocation."""
    if type_of(service) == LOAD_BALANCER:
        return service["spec"].get("allocateLoadBalancerNodePorts") is not False
    return type_of(service) == NODE_PORT


def needs_health_check(service: Json) -> bool:
    return type_of(service) == LOAD_BALANCER and service["spec"].get("externalTrafficPolicy") == "Local"


def is_headless(service: Json) -> bool:
    return cluster_ips_of(service) == [NO_ADDRESS]


def is_selectorless_headless(service: Json) -> bool:
    """Report whether the service's endpoints are unknown and may be of either family."""
    return cluster_ip_of(service) == NO_ADDRESS and not service["spec"].get("selector")


def is_externally_accessible(service: Json) -> bool:
    return has_node_ports(service) or (type_of(service) == CLUSTER_IP and bool(service["spec"].get("externalIPs")))
