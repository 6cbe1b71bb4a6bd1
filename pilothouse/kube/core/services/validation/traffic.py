"""The fields that decide which endpoint a connection goes to: affinity, policies, distribution, health check."""

from __future__ import annotations

from pilothouse.kube.core.services.traits import (
    EXTERNAL_NAME,
    TYPES,
    health_check_port_of,
    is_externally_accessible,
    needs_health_check,
    type_of,
)
from pilothouse.kube.validation.fields import one_of, port_num, required_one_of
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, required, root
from pilothouse.machinery.objects import Json

MAX_AFFINITY_SECONDS = 86400

_AFFINITIES = ("ClientIP", "None")
_POLICIES = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_SPEC = root("spec")


def validate_affinity(spec: Json) -> Errors:
    affinity, config = spec.get("sessionAffinity") or "", spec.get("sessionAffinityConfig")
    yield from required_one_of(affinity, _SPEC.child("sessionAffinity"), _AFFINITIES)
    path = _SPEC.child("sessionAffinityConfig")
    if affinity == "ClientIP":
        yield from _validate_client_ip(config, path)
    elif affinity == "None" and config is not None:
        yield forbidden(path, "must not be set when session affinity is None")


def _validate_client_ip(config: Json | None, path: Path) -> Errors:
    why = "when session affinity type is ClientIP"
    client = None if config is None else config.get("clientIP")
    if config is None:
        yield required(path, why)
    elif client is None:
        yield required(path.child("clientIP"), why)
    elif (seconds := client.get("timeoutSeconds")) is None:
        yield required(path.child("clientIP", "timeoutSeconds"), why)
    elif not 0 < seconds <= MAX_AFFINITY_SECONDS:
        limits = f"must be greater than 0 and less than {MAX_AFFINITY_SECONDS}"
        yield invalid(path.child("clientIP", "timeoutSeconds"), seconds, limits)


def validate_external_traffic(service: Json) -> Errors:
    policy, path = service["spec"].get("externalTrafficPolicy") or "", _SPEC.child("externalTrafficPolicy")
    if is_externally_accessible(service):
        yield from required_one_of(policy, path, _POLICIES)
    elif policy:
        yield invalid(path, policy, "may only be set for externally-accessible services")
    yield from _validate_health_check(service)


def _validate_health_check(service: Json) -> Errors:
    port, path = health_check_port_of(service), _SPEC.child("healthCheckNodePort")
    if needs_health_check(service):
        if port:
            yield from port_num(port, path)
        else:
            yield required(path)
    elif port:
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid(path, port, why)


def validate_internal_traffic(service: Json) -> Errors:
    policy, path = service["spec"].get("internalTrafficPolicy"), _SPEC.child("internalTrafficPolicy")
    if policy is not None:
        yield from one_of(policy, path, _POLICIES)
    elif type_of(service) in TYPES and type_of(service) != EXTERNAL_NAME:
        yield required(path)


def validate_traffic_distribution(service: Json) -> Errors:
    distribution = service["spec"].get("trafficDistribution")
    if distribution is not None:
        yield from one_of(distribution, _SPEC.child("trafficDistribution"), _DISTRIBUTIONS)
