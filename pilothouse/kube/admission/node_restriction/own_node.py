"""Rules for a kubelet's own Node: protected taints, labels and config sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.refusals import refused
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, part
from pilothouse.machinery.validation.immutable import semantically_equal

_RESTRICTED = ("node-restriction.kubernetes.io",)
_RESERVED = ("kubernetes.io", "k8s.io")
_OF_KUBELETS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_LABELS_OF_KUBELETS = frozenset({
    "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "kubernetes.io/os", "kubernetes.io/arch",
    "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
})  # fmt: skip


def admit_node(node: str, attributes: Attributes) -> None:
    """Raises Forbidden."""
    if attributes.name != node:
        raise refused(attributes, f"node {quote(node)} is not allowed to modify node {quote(attributes.name)}")
    if attributes.operation is Operation.CREATE:
        obj = attributes.obj or {}
        if part(obj, "spec").get("configSource") is not None:
            raise refused(attributes, f"node {quote(node)} is not allowed to create pods with a non-nil configSource")
        if forbidden := _forbidden(_changed(_labels(obj), {})):
            raise refused(attributes, f"node {quote(node)} is not allowed to set the following labels: {forbidden}")
    elif attributes.operation is Operation.UPDATE:
        _admit_changed(node, attributes, attributes.obj or {}, attributes.old or {})


def _admit_changed(node: str, attributes: Attributes, obj: Json, old: Json) -> None:
    spec, before = part(obj, "spec"), part(old, "spec")
    source = spec.get("configSource")
    if source is not None and not semantically_equal(source, before.get("configSource")):
        reason = "is not allowed to update configSource to a new non-nil configSource"
        raise refused(attributes, f"node {quote(node)} {reason}")
    if not semantically_equal(spec.get("taints"), before.get("taints")):
        raise refused(attributes, f"node {quote(node)} is not allowed to modify taints")
    owners = (part(item, "metadata").get("ownerReferences") for item in (obj, old))
    if not semantically_equal(*owners):
        raise refused(attributes, f"node {quote(node)} is not allowed to modify ownerReferences")
    if forbidden := _forbidden(_changed(_labels(obj), _labels(old))):
        raise refused(attributes, f"is not allowed to modify labels: {forbidden}")


def _labels(obj: Json) -> Mapping[str, str]:
    return part(obj, "metadata", "labels")


def _changed(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    return [label for label in new.keys() | old.keys() if new.get(label) != old.get(label)]


def _forbidden(labels: Iterable[str]) -> str:
    return ", ".join(sorted(filter(_is_forbidden, labels)))


def _is_forbidden(label: str) -> bool:
    if _is_in(label, _RESTRICTED):
        return True
    return _is_in(label, _RESERVED) and label not in _LABELS_OF_KUBELETS and not _is_in(label, _OF_KUBELETS)


def _is_in(label: str, domains: Iterable[str]) -> bool:
    """Report whether the label's prefix is one of the domains or a subdomain."""
    prefix, slash, _ = label.partition("/")
    return bool(slash) and any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)
