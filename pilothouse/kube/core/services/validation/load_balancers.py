"""Validation of the fields and the status of load balancers."""

from __future__ import annotations

from pilothouse.kube.core.services.traits import LOAD_BALANCER, type_of
from pilothouse.kube.validation.addresses import legacy_cidr, legacy_ip, not_an_ip
from pilothouse.kube.validation.fields import dns_subdomain, qualified_name
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required, root
from pilothouse.machinery.objects import Json, annotations_of

SOURCE_RANGES_ANNOTATION = "service.beta.kubernetes.io/load-balancer-source-ranges"

_IP_MODES = ("Proxy", "VIP")
_ONLY_LOAD_BALANCERS = "may only be used when `type` is 'LoadBalancer'"
_CLASS = root("spec", "loadBalancerClass")


def validate_load_balancer_fields(service: Json, old: Json | None) -> Errors:
    yield from _validate_source_ranges(service, old)
    allocate, balancer = service["spec"].get("allocateLoadBalancerNodePorts"), type_of(service) == LOAD_BALANCER
    if allocate is not None and not balancer:
        yield forbidden(root("spec", "allocateLoadBalancerNodePorts"), _ONLY_LOAD_BALANCERS)
    if balancer and allocate is None:
        yield required(root("allocateLoadBalancerNodePorts"))


def _validate_source_ranges(service: Json, old: Json | None) -> Errors:
    """Validate the field, or else the annotation. Both may have spaces around a range."""
    ranges = service["spec"].get("loadBalancerSourceRanges") or []
    annotation = annotations_of(service).get(SOURCE_RANGES_ANNOTATION)
    if ranges:
        path = root("spec", "LoadBalancerSourceRanges")
    elif annotation is not None:
        path = root("metadata", "annotations").key(SOURCE_RANGES_ANNOTATION)
    else:
        return
    if type_of(service) != LOAD_BALANCER:
        yield forbidden(path, _ONLY_LOAD_BALANCERS)
    if ranges:
        stored = [range_.strip() for range_ in (old["spec"].get("loadBalancerSourceRanges") or ())] if old else []
        for position, range_ in enumerate(ranges):
            yield from legacy_cidr(path.index(position), range_.strip(), old=stored)
    elif old is None or annotations_of(old).get(SOURCE_RANGES_ANNOTATION) != annotation:
        yield from _validate_annotated_ranges(annotation or "", path)


def _validate_annotated_ranges(annotation: str, path: Path) -> Errors:
    if annotation.strip():
        for range_ in annotation.strip().split(","):
            yield from legacy_cidr(path, range_.strip())


def validate_load_balancer_class(service: Json, old: Json | None) -> Errors:
    name, balancer = service["spec"].get("loadBalancerClass"), type_of(service) == LOAD_BALANCER
    if old is not None and balancer and type_of(old) == LOAD_BALANCER and name != old["spec"].get("loadBalancerClass"):
        yield invalid(_CLASS, name, "may not change once set")
    if name is None:
        return
    if balancer:
        yield from qualified_name(name, _CLASS)
    else:
        yield forbidden(_CLASS, _ONLY_LOAD_BALANCERS)


def validate_load_balancer_status(service: Json, old: Json) -> Errors:
    path, points = root("status", "loadBalancer", "ingress"), ingress_points(service)
    if points and type_of(service) != LOAD_BALANCER:
        yield forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    stored = [point["ip"] for point in ingress_points(old) if point.get("ip")]
    for position, point in enumerate(points):
        point_path = path.index(position)
        ip, mode, hostname = point.get("ip") or "", point.get("ipMode"), point.get("hostname") or ""
        if ip:
            yield from legacy_ip(point_path.child("ip"), ip, old=stored)
        if mode is None:
            if ip:
                yield required(point_path.child("ipMode"), "must be specified when `ip` is set")
        elif not ip:
            yield forbidden(point_path.child("ipMode"), "may not be specified when `ip` is not set")
        elif mode not in _IP_MODES:
            yield not_supported(point_path.child("ipMode"), mode, _IP_MODES)
        if hostname:
            yield from dns_subdomain(hostname, point_path.child("hostname"))
            yield from not_an_ip(hostname, point_path.child("hostname"))


def ingress_points(service: Json) -> list[Json]:
    """Return the ingress points in the load balancer's status."""
    return ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
