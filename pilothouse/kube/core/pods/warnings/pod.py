"""Warnings about pods and pod templates, in upstream's order."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.apiserver.server.features import per_gates
from pilothouse.kinds.pods import containers_with_path
from pilothouse.kube.core.pods.validation.pod import replica_form, replica_forms
from pilothouse.kube.core.pods.validation.profiles import SECCOMP_POD
from pilothouse.kube.core.pods.validation.scheduling import PREFERRED, REQUIRED
from pilothouse.kube.core.pods.warnings.containers import (
    SECCOMP_ANNOTATION_IGNORED,
    container_warnings,
    fractional_warnings,
    port_name_warnings,
    port_warnings,
)
from pilothouse.kube.core.pods.warnings.volumes import overlap_warnings, volume_warnings
from pilothouse.kube.validation.addresses import warnings_for_ip
from pilothouse.kube.validation.selectors import DEPRECATED_NODE_LABELS, warnings_for_term
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.field import NOWHERE, Path, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, annotations_of, name_of
from pilothouse.machinery.validation.names import is_dns1123_label, is_valid_label_value

_DEPRECATED_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_NAME_ADVICE = (
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
    "a DNS label is recommended: "
)


def pod_warnings(pod: Json) -> Iterator[str]:
    if messages := is_dns1123_label(name_of(pod)):
        yield f"{_NAME_ADVICE}[{' '.join(messages)}]"
    without, form = _forms_without_warnings(), replica_form(pod)
    if form is not None and without.get(form):
        return
    found = list(_located(pod, Path(), is_template=False))
    if form is not None and not found:
        without.put(form, True, size=len(form))
    yield from found


@per_gates
def _forms_without_warnings() -> BoundedCache[bytes, bool]:
    return replica_forms()


def pod_template_warnings(template: Json, path: Path) -> Iterator[str]:
    yield from _located(template, path, is_template=True)


def _located(obj: Json, path: Path, *, is_template: bool) -> Iterator[str]:
    """Yield the warnings. Paths are computed only for objects with warnings, the rare case."""
    if any(True for _ in _warnings(obj, NOWHERE, is_template=is_template)):
        yield from _warnings(obj, path, is_template=is_template)


def status_warnings(pod: Json) -> Iterator[str]:
    status = pod.get("status") or {}
    for name in ("podIPs", "hostIPs"):
        for position, address in enumerate(status.get(name) or ()):
            yield from warnings_for_ip(address.get("ip") or "", root("status", name).index(position).child("ip"))


def _warnings(obj: Json, path: Path, *, is_template: bool) -> Iterator[str]:
    spec, at, annotations = obj.get("spec") or {}, path.child("spec"), annotations_of(obj)
    yield from placement_warnings(spec, at)
    for key, message in _DEPRECATED_ANNOTATIONS.items():
        if key in annotations:
            yield f"{path.child('metadata', 'annotations').key(key)}: {message}"
    if volumes := spec.get("volumes"):
        yield from volume_warnings(volumes, at.child("volumes"))
        yield from overlap_warnings(volumes)
    for field, name in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for position, item in enumerate(spec.get(field) or ()):
            value = item.get(name) or ""
            if value in seen:
                yield f"{at.child(field).index(position).child(name)}: duplicate {name} {quote(value)}"
            seen.add(value)
    for position, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{at.child("imagePullSecrets").index(position).child("name")}: invalid empty name ""'
    if overhead := spec.get("overhead"):
        yield from fractional_warnings(overhead, at.child("overhead"))
    pod_profile = (spec.get("securityContext") or {}).get("seccompProfile")
    if SECCOMP_POD in annotations and pod_profile is None:
        annotation = path.child("metadata", "annotations").key(SECCOMP_POD)
        yield f"{annotation}: {SECCOMP_ANNOTATION_IGNORED}"
    for container_path, container in containers_with_path(spec, at):
        yield from container_warnings(container, container_path, obj, path, is_template=is_template)
    yield from port_warnings(spec, at)
    yield from port_name_warnings(spec, at)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        reason = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{at.child('terminationGracePeriodSeconds')}: {reason}"
    yield from affinity_term_warnings(spec, at)
    for position, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from warnings_for_ip(server, at.child("dnsConfig", "nameservers").index(position))
    for position, alias in enumerate(spec.get("hostAliases") or ()):
        yield from warnings_for_ip(alias.get("ip") or "", at.child("hostAliases").index(position).child("ip"))


_MATCHES_NOTHING = "a null labelSelector results in matching no pod"


def placement_warnings(spec: Json, path: Path) -> Iterator[str]:
    for key in sorted(spec.get("nodeSelector") or ()):
        if key in DEPRECATED_NODE_LABELS:
            yield f"{path.child('nodeSelector').key(key)}: {DEPRECATED_NODE_LABELS[key]}"
    nodes = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    at = path.child("affinity", "nodeAffinity")
    for position, term in enumerate((nodes.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        term_path = at.child(REQUIRED, "nodeSelectorTerms").index(position)
        yield from warnings_for_term(term, term_path)
    for position, term in enumerate(nodes.get(PREFERRED) or ()):
        term_path = at.child(PREFERRED).index(position).child("preference")
        yield from warnings_for_term(term.get("preference") or {}, term_path)
        # Invalid label values are errors in required terms, and warnings in preferred terms.
        for number, expression in enumerate((term.get("preference") or {}).get("matchExpressions") or ()):
            for index, value in enumerate(expression.get("values") or ()):
                for message in is_valid_label_value(value):
                    value_path = term_path.child("matchExpressions").index(number).child("values").index(index)
                    yield f"{value_path}: {value} is invalid, {message}"
    for position, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        at, key = path.child("topologySpreadConstraints").index(position), constraint.get("topologyKey") or ""
        if key in DEPRECATED_NODE_LABELS:
            yield f"{at.child('topologyKey')}: {key} is {DEPRECATED_NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{at.child('labelSelector')}: {_MATCHES_NOTHING}"


def affinity_term_warnings(spec: Json, path: Path) -> Iterator[str]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        pods, at = affinity.get(kind) or {}, path.child("affinity", kind)
        for position, term in enumerate(pods.get(REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{at.child(REQUIRED).index(position).child('labelSelector')}: {_MATCHES_NOTHING}"
        for position, weighted in enumerate(pods.get(PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                selector_path = at.child(PREFERRED).index(position).child("podAffinityTerm", "labelSelector")
                yield f"{selector_path}: {_MATCHES_NOTHING}"
