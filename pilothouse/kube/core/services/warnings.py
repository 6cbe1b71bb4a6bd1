"""Warnings about services."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.kube.core.services.traits import CLUSTER_IP, EXTERNAL_NAME, NO_ADDRESS, cluster_ip_of, type_of
from pilothouse.kube.validation.addresses import warnings_for_cidr, warnings_for_ip
from pilothouse.machinery.field import Path, root
from pilothouse.machinery.objects import Json, annotations_of

TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"

_SPEC = root("spec")


def service_warnings(service: Json) -> Iterator[str]:
    spec = service["spec"]
    if TOPOLOGY_HINTS in annotations_of(service):
        yield f"annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"
    if cluster_ip_of(service) not in ("", NO_ADDRESS):
        yield from _ip_warnings(spec.get("clusterIPs") or [], _SPEC.child("clusterIPs"))
    if type_of(service) == CLUSTER_IP and cluster_ip_of(service) == NO_ADDRESS:
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if spec.get("externalIPs"):
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    ips = service["spec"].get("externalIPs") or []
    yield from _ip_warnings(ips, _SPEC.child("externalIPs"))
    headless = type_of(service) == CLUSTER_IP and cluster_ip_of(service) == NO_ADDRESS
    if ips and not headless and type_of(service) != EXTERNAL_NAME:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if spec.get("loadBalancerIP"):
        yield from warnings_for_ip(spec["loadBalancerIP"], _SPEC.child("loadBalancerIP"))
    for position, cidr in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from warnings_for_cidr(cidr, _SPEC.child("loadBalancerSourceRanges").index(position))
    external = type_of(service) == EXTERNAL_NAME
    if external and service["spec"].get("externalIPs"):
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if not external and service["spec"].get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _ip_warnings(ips: list[str], path: Path) -> Iterator[str]:
    for position, ip in enumerate(ips):
        yield from warnings_for_ip(ip, path.index(position))
