"""Rules for a kubelet's own Node (taints, labels, config sources) and for the objects of its node: leases, CSINodes,
resource slices and claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilothouse.apiserver.admission.interface import Attributes, Operation, refused
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.certificates.x509 import BadRequestData, common_name, parse_request
from pilothouse.kube.node_authorizer import authorizer
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, name_of, part, text
from pilothouse.machinery.validation.immutable import semantically_equal

_RESTRICTED = ("node-restriction.kubernetes.io",)
_RESERVED = ("kubernetes.io", "k8s.io")
_KUBELET_LABEL_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_KUBELET_LABELS = frozenset({
    "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "kubernetes.io/os", "kubernetes.io/arch",
    "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
})  # fmt: skip

_SIGNERS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
_KUBELET_STATUS_FIELDS = ("capacity", "conditions", "allocatedResourceStatuses", "allocatedResources")
"""Fields of a claim's status reported by kubelets."""


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
    return _is_in(label, _RESERVED) and label not in _KUBELET_LABELS and not _is_in(label, _KUBELET_LABEL_DOMAINS)


def _is_in(label: str, domains: Iterable[str]) -> bool:
    """Report whether the label's prefix is one of the domains or a subdomain."""
    prefix, slash, _ = label.partition("/")
    return bool(slash) and any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)


def admit_lease(node: str, attributes: Attributes) -> None:
    if attributes.namespace != authorizer.NODE_LEASES:
        raise refused(attributes, authorizer.LEASE_ELSEWHERE)
    if _name(attributes) != node:
        raise refused(attributes, authorizer.LEASE_OF_ANOTHER)


def admit_csi_node(node: str, attributes: Attributes) -> None:
    if _name(attributes) != node:
        raise refused(attributes, authorizer.CSI_NODE_OF_ANOTHER)


def _name(attributes: Attributes) -> str:
    """Return the object's name; create requests have the name in the body only."""
    return name_of(attributes.obj or {}) if attributes.operation is Operation.CREATE else attributes.name


def admit_resource_slice(node: str, attributes: Attributes) -> None:
    """Check creates. The node authorizer checks updates, because it knows the stored slice."""
    written = {Operation.CREATE: attributes.obj, Operation.DELETE: attributes.old}
    if attributes.operation not in written:
        return
    if text(written[attributes.operation] or {}, "spec", "nodeName") != node:
        verb = attributes.operation.value.lower()
        raise refused(attributes, f"can only {verb} ResourceSlice with the same NodeName as the requesting node")


def admit_signing_request(node: str, attributes: Attributes) -> None:
    obj = attributes.obj or {}
    if enabled("AllowInsecureKubeletCertificateSigningRequests"):
        return
    if attributes.operation is not Operation.CREATE or text(obj, "spec", "signerName") not in _SIGNERS:
        return
    try:
        request = parse_request(text(obj, "spec", "request"))
    except BadRequestData as error:
        raise refused(attributes, f"unable to parse csr: {error}") from None
    if common_name(request) != f"system:node:{node}":
        raise refused(attributes, f"can only create a node CSR with CN=system:node:{node}")


def admit_claim_status(node: str, attributes: Attributes) -> None:
    if attributes.subresource != "status":
        raise refused(attributes, "may only update PVC status")
    if attributes.operation is not Operation.UPDATE:
        raise refused(attributes, f"unexpected operation {quote(attributes.operation.value)}")
    new, old = _of_others(attributes.obj or {}), _of_others(attributes.old or {})
    changed = sorted(key for key in new.keys() | old.keys() if not semantically_equal(new.get(key), old.get(key)))
    if changed:
        reason = "is not allowed to update fields other than status.quantity and status.conditions"
        raise refused(attributes, f"node {quote(node)} {reason}: {', '.join(changed)}")


def _of_others(claim: Json) -> Json:
    """Return the parts of a claim that kubelets must not change."""
    meta = {key: value for key, value in part(claim, "metadata").items() if key not in _BOOKKEEPING}
    status = {key: value for key, value in part(claim, "status").items() if key not in _KUBELET_STATUS_FIELDS}
    return claim | {"metadata": meta, "status": status}


_BOOKKEEPING = ("resourceVersion", "managedFields")
