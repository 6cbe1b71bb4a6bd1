"""Validation of services in upstream's order: ports, addresses, affinity, traffic policies and health checks."""

from __future__ import annotations

from pilothouse.kube.core.services import traits
from pilothouse.kube.core.services.validation import load_balancers
from pilothouse.kube.core.services.validation.cluster_ips import validate_cluster_ips
from pilothouse.kube.core.services.warnings import TOPOLOGY_HINTS, TOPOLOGY_MODE
from pilothouse.kube.validation import fields
from pilothouse.kube.validation.addresses import endpoint_ip, legacy_ip
from pilothouse.machinery.field import Errors, duplicate, forbidden, invalid, required, root
from pilothouse.machinery.objects import Json, annotations_of
from pilothouse.machinery.validation.labels import validate_labels

_SPEC = root("spec")


def validate_service(service: Json, old: Json | None) -> Errors:
    """`old` is the stored service of an update. Stored faults are tolerated."""
    annotations = annotations_of(service)
    hints, mode = annotations.get(TOPOLOGY_HINTS), annotations.get(TOPOLOGY_MODE)
    if hints is not None and mode is not None and hints != mode:
        path = root("metadata", "annotations").key(TOPOLOGY_MODE)
        yield invalid(path, mode, f"must match annotations[{TOPOLOGY_HINTS}] when both are specified")
    if (
        not traits.ports_of(service)
        and not traits.is_headless(service)
        and traits.type_of(service) != traits.EXTERNAL_NAME
    ):
        yield required(_SPEC.child("ports"))
    if traits.type_of(service) in (traits.LOAD_BALANCER, traits.NODE_PORT) and traits.is_headless(service):
        reason = f"may not be set to 'None' for {traits.type_of(service)} services"
        yield invalid(_SPEC.child("clusterIPs").index(0), "None", reason)
    if traits.type_of(service) == traits.EXTERNAL_NAME:
        reason = "may not be set for ExternalName services"
        if traits.cluster_ips_of(service):
            yield forbidden(_SPEC.child("clusterIPs"), reason)
        if traits.ip_families_of(service):
            yield forbidden(_SPEC.child("ipFamilies"), reason)
        if service["spec"].get("ipFamilyPolicy") is not None:
            yield forbidden(_SPEC.child("ipFamilyPolicy"), reason)
        name = (service["spec"].get("externalName") or "").removesuffix(".")
        if name:
            yield from fields.dns_subdomain(name, _SPEC.child("externalName"))
        else:
            yield required(_SPEC.child("externalName"))
    yield from validate_ports(service)
    yield from validate_labels(service["spec"].get("selector"), _SPEC.child("selector"))
    yield from validate_affinity(service["spec"])
    yield from validate_cluster_ips(service, old)
    stored = (old["spec"].get("externalIPs") or []) if old is not None else []
    for position, ip in enumerate(service["spec"].get("externalIPs") or ()):
        path = _SPEC.child("externalIPs").index(position)
        wrong = list(legacy_ip(path, ip, old=stored))
        yield from wrong or endpoint_ip(ip, path)
    yield from fields.required_one_of(traits.type_of(service), _SPEC.child("type"), traits.TYPES)
    yield from validate_port_uniqueness(service)
    yield from load_balancers.validate_load_balancer_fields(service, old)
    yield from load_balancers.validate_load_balancer_class(service, None)
    yield from validate_external_traffic(service)
    yield from validate_internal_traffic(service)
    yield from validate_traffic_distribution(service)


_PORTS = root("spec", "ports")


def validate_ports(service: Json) -> Errors:
    ports = traits.ports_of(service)
    names: set[str] = set()
    for position, port in enumerate(ports):
        path, name = _PORTS.index(position), port.get("name") or ""
        if name:
            yield from fields.dns_label(name, path.child("name"))
            if name in names:
                yield duplicate(path.child("name"), name)
            names.add(name)
        elif len(ports) > 1:
            yield required(path.child("name"))
        yield from fields.port_num(port.get("port") or 0, path.child("port"))
        yield from fields.required_one_of(port.get("protocol") or "", path.child("protocol"), fields.PROTOCOLS)
        yield from fields.port_num_or_name(port.get("targetPort", 0), path.child("targetPort"))
        if port.get("appProtocol") is not None:
            yield from fields.qualified_name(port["appProtocol"], path.child("appProtocol"))


def validate_port_uniqueness(service: Json) -> Errors:
    """Require unique ports and node ports per protocol. A ClusterIP service has no node ports."""
    ports = traits.ports_of(service)
    if traits.type_of(service) == traits.CLUSTER_IP:
        for position, port in enumerate(ports):
            if port.get("nodePort"):
                reason = "may not be used when `type` is 'ClusterIP'"
                yield forbidden(_PORTS.index(position).child("nodePort"), reason)
    seen: set[tuple[str, int]] = set()
    for position, port in enumerate(ports):
        if not port.get("nodePort"):
            continue
        key = (port.get("protocol") or "", port["nodePort"])
        if key in seen:
            yield duplicate(_PORTS.index(position).child("nodePort"), port["nodePort"])
        seen.add(key)
    seen.clear()
    for position, port in enumerate(ports):
        key = (port.get("protocol") or "", port.get("port") or 0)
        if key in seen:
            yield duplicate(_PORTS.index(position), _printed(*key))
        seen.add(key)


def _printed(protocol: str, port: int) -> Json:
    """Return a port with only these fields in the form of upstream's messages."""
    return {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": port, "TargetPort": 0, "NodePort": 0}


MAX_AFFINITY_SECONDS = 86400

_AFFINITIES = ("ClientIP", "None")
_POLICIES = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")


def validate_affinity(spec: Json) -> Errors:
    affinity, config = spec.get("sessionAffinity") or "", spec.get("sessionAffinityConfig")
    yield from fields.required_one_of(affinity, _SPEC.child("sessionAffinity"), _AFFINITIES)
    path = _SPEC.child("sessionAffinityConfig")
    if affinity == "ClientIP":
        reason = "when session affinity type is ClientIP"
        client = None if config is None else config.get("clientIP")
        if config is None:
            yield required(path, reason)
        elif client is None:
            yield required(path.child("clientIP"), reason)
        elif (seconds := client.get("timeoutSeconds")) is None:
            yield required(path.child("clientIP", "timeoutSeconds"), reason)
        elif not 0 < seconds <= MAX_AFFINITY_SECONDS:
            limits = f"must be greater than 0 and less than {MAX_AFFINITY_SECONDS}"
            yield invalid(path.child("clientIP", "timeoutSeconds"), seconds, limits)
    elif affinity == "None" and config is not None:
        yield forbidden(path, "must not be set when session affinity is None")


def validate_external_traffic(service: Json) -> Errors:
    policy, path = service["spec"].get("externalTrafficPolicy") or "", _SPEC.child("externalTrafficPolicy")
    if traits.is_externally_accessible(service):
        yield from fields.required_one_of(policy, path, _POLICIES)
    elif policy:
        yield invalid(path, policy, "may only be set for externally-accessible services")
    port, path = traits.health_check_port_of(service), _SPEC.child("healthCheckNodePort")
    if traits.needs_health_check(service):
        if port:
            yield from fields.port_num(port, path)
        else:
            yield required(path)
    elif port:
        reason = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid(path, port, reason)


def validate_internal_traffic(service: Json) -> Errors:
    policy, path = service["spec"].get("internalTrafficPolicy"), _SPEC.child("internalTrafficPolicy")
    if policy is not None:
        yield from fields.one_of(policy, path, _POLICIES)
    elif traits.type_of(service) in traits.TYPES and traits.type_of(service) != traits.EXTERNAL_NAME:
        yield required(path)


def validate_traffic_distribution(service: Json) -> Errors:
    distribution = service["spec"].get("trafficDistribution")
    if distribution is not None:
        yield from fields.one_of(distribution, _SPEC.child("trafficDistribution"), _DISTRIBUTIONS, plain=True)
