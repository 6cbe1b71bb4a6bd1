"""Validation of pod specs in pods and templates, including pod-level resources."""

from __future__ import annotations

from pilothouse.kinds.pods import containers_with_path, is_mirror_pod
from pilothouse.kinds.resources import aggregate_limits, aggregate_requests, read_resources
from pilothouse.kube.core.pods.validation import claims, networking
from pilothouse.kube.core.pods.validation.container import PodContext
from pilothouse.kube.core.pods.validation.container_resources import validate_overhead, validate_pod_resources
from pilothouse.kube.core.pods.validation.containers import (
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
)
from pilothouse.kube.core.pods.validation.operating_system import validate_host_processes, validate_os
from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.core.pods.validation.scheduling import validate_affinity, validate_topology_spread
from pilothouse.kube.core.pods.validation.security_context import validate_pod_security_context
from pilothouse.kube.core.pods.validation.volumes import CheckedVolumes, check_volumes
from pilothouse.kube.validation.fields import dns_label, follow, required_one_of
from pilothouse.kube.validation.resource_names import is_huge_page
from pilothouse.kube.validation.tolerations import validate_tolerations
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_found, required
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.validation.labels import validate_labels
from pilothouse.machinery.validation.names import name_is_dns_subdomain
from pilothouse.machinery.validation.pattern_format import inclusive_range_error

MAX_INT32 = 2**31 - 1

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")


def validate_pod_spec(spec: Json, path: Path, options: PodValidationOptions, *, pod: Json | None = None) -> Errors:
    """Yield all errors in upstream's order. `pod` is None for a template."""
    if spec.get("terminationGracePeriodSeconds") is None:
        yield required(path.child("terminationGracePeriodSeconds"))
    volumes = _check_volumes(spec, path, options, pod)
    yield from volumes.errors
    resource_claims = spec.get("resourceClaims") or ()
    context = PodContext(
        volumes=volumes.valid,
        claim_names=frozenset(claim["name"] for claim in resource_claims if claim.get("name")),
        restart_policy=spec.get("restartPolicy") or "",
        host_users=spec.get("hostUsers") is not False,
        grace_period=spec.get("terminationGracePeriodSeconds"),
        os_name=(spec["os"].get("name") or "") if spec.get("os") is not None else None,
        options=options,
    )
    if resource_claims := spec.get("resourceClaims"):
        is_mirror = pod is not None and is_mirror_pod(pod)
        at = path.child("resourceClaims")
        yield from claims.validate_resource_claims(resource_claims, at, is_mirror_pod=is_mirror)
    regular, init = spec.get("containers") or (), spec.get("initContainers") or ()
    yield from validate_containers(regular, path.child("containers"), context)
    if init:
        yield from validate_init_containers(init, regular, path.child("initContainers"), context)
    if ephemeral := spec.get("ephemeralContainers"):
        at = path.child("ephemeralContainers")
        yield from validate_ephemeral_containers(ephemeral, (*regular, *init), at, context)
    if spec.get("resources") is not None:
        yield from validate_pod_level_resources(spec, path.child("resources"), context)
    yield from _validate_after_containers(spec, path, options)
    # Variables from files need an emptyDir volume.
    by_name = {volume.get("name"): volume for volume in spec.get("volumes") or ()}
    for at, container in containers_with_path(spec, path):
        for position, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            name = reference.get("volumeName") or ""
            name_path = at.child("env").index(position).child("valueFrom", "fileKeyRef", "volumeName")
            if name not in by_name:
                yield not_found(name_path, name)
            elif by_name[name].get("emptyDir") is None:
                yield invalid(name_path, name, "referenced volume must be of type emptyDir")


def _check_volumes(spec: Json, path: Path, options: PodValidationOptions, pod: Json | None) -> CheckedVolumes:
    if not (volumes := spec.get("volumes")):
        return CheckedVolumes()
    return check_volumes(volumes, path.child("volumes"), options, pod_name=name_of(pod) if pod else "")


def _validate_after_containers(spec: Json, path: Path, options: PodValidationOptions) -> Errors:
    """Validate the remaining fields in upstream's order, which is the order of the causes.

    Most pods set few of these fields: validators run only for fields that are set.
    """
    if spec.get("hostNetwork"):
        yield from networking.validate_host_network_ports(spec, path, options)
    if (policy := spec.get("restartPolicy")) not in _RESTART_POLICIES:
        yield from required_one_of(policy or "", path.child("restartPolicy"), _RESTART_POLICIES)
    if (policy := spec.get("dnsPolicy")) not in _DNS_POLICIES:
        yield from required_one_of(policy or "", path.child("dnsPolicy"), _DNS_POLICIES)
    if selector := spec.get("nodeSelector"):
        yield from validate_labels(dict(sorted(selector.items())), path.child("nodeSelector"))
    if spec.get("securityContext") or spec.get("shareProcessNamespace"):
        yield from validate_pod_security_context(spec, path, options)
    if affinity := spec.get("affinity"):
        yield from validate_affinity(affinity, path.child("affinity"), options)
    if spec.get("dnsConfig") is not None or spec.get("dnsPolicy") == "None":
        yield from networking.validate_dns_config(spec, path.child("dnsConfig"))
    if gates := spec.get("readinessGates"):
        yield from claims.validate_readiness_gates(gates, path.child("readinessGates"))
    if gates := spec.get("schedulingGates"):
        yield from claims.validate_scheduling_gates(gates, path.child("schedulingGates"))
    if constraints := spec.get("topologySpreadConstraints"):
        yield from validate_topology_spread(constraints, path.child("topologySpreadConstraints"), options)
    yield from validate_host_processes(spec, path)
    if spec.get("hostUsers") is False:
        yield from networking.validate_host_users(spec, path, options)
    if spec.get("hostnameOverride") is not None:
        yield from networking.validate_hostname_override(spec, path.child("hostnameOverride"))
    for field in ("serviceAccountName", "nodeName"):
        if name := spec.get(field):
            yield from follow(name_is_dns_subdomain, name, path.child(field))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        yield invalid(path.child("activeDeadlineSeconds"), deadline, inclusive_range_error(1, MAX_INT32))
    for field in ("hostname", "subdomain"):
        if label := spec.get(field):
            yield from dns_label(label, path.child(field))
    if tolerations := spec.get("tolerations"):
        allow = options.allow_comparing_tolerations
        yield from validate_tolerations(tolerations, path.child("tolerations"), allow_comparisons=allow)
    if aliases := spec.get("hostAliases"):
        yield from networking.validate_host_aliases(aliases, path.child("hostAliases"))
    if name := spec.get("priorityClassName"):
        yield from follow(name_is_dns_subdomain, name, path.child("priorityClassName"))
    if (name := spec.get("runtimeClassName")) is not None:
        yield from follow(name_is_dns_subdomain, name, path.child("runtimeClassName"))
    if (policy := spec.get("preemptionPolicy")) is not None:
        yield from required_one_of(policy, path.child("preemptionPolicy"), _PREEMPTION_POLICIES)
    if overhead := spec.get("overhead"):
        yield from validate_overhead(overhead, path.child("overhead"), options)
    if spec.get("os") is not None:
        yield from validate_os(spec, path)
    if (group := spec.get("schedulingGroup")) is not None:
        yield from claims.validate_scheduling_group(group, path.child("schedulingGroup"))


def validate_pod_level_resources(spec: Json, path: Path, pod: PodContext) -> Errors:
    resources = spec["resources"]
    if pod.os_name == "windows":
        yield forbidden(path, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        yield forbidden(path.child("claims"), "claims may not be set for Resources at pod-level")
    yield from validate_pod_resources(resources, path, pod.claim_names, pod.options)
    requests, limits = read_resources(spec, "requests"), read_resources(spec, "limits")
    for name, total in sorted(aggregate_requests(spec).items()):
        if name in requests and total > requests[name]:
            reason = f"must be greater than or equal to aggregate container requests of {total}"
            yield invalid(path.child("requests").key(name), str(requests[name]), reason)
    for name, total in sorted(aggregate_limits(spec).items()):
        if is_huge_page(name) and name in limits and total > limits[name]:
            reason = f"must be greater than or equal to aggregate container limits of {total}"
            yield invalid(path.child("limits").key(name), str(limits[name]), reason)
    limits = read_resources(spec, "limits")
    for position, container in enumerate(spec.get("containers") or ()):
        for name, amount in sorted(read_resources(container, "limits").items()):
            if name in limits and amount > limits[name]:
                at = path.child("containers").index(position).key(name).child("limits")
                reason = f"must be less than or equal to pod limits of {limits[name]}"
                yield invalid(at, str(amount), reason)
