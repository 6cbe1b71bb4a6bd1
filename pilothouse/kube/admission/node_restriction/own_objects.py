"""Rules for objects of a node: leases, CSINodes, resource slices and claims."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.refusals import refused
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.certificates.x509 import BadRequestData, common_name, parse_request
from pilothouse.kube.node_authorizer.authorizer import (
    CSI_NODE_OF_ANOTHER,
    LEASE_ELSEWHERE,
    LEASE_OF_ANOTHER,
    NODE_LEASES,
)
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, name_of, part, text
from pilothouse.machinery.validation.immutable import semantically_equal

_SIGNERS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
_OF_KUBELETS = ("capacity", "conditions", "allocatedResourceStatuses", "allocatedResources")
"""Fields of a claim's status reported by kubelets."""


def admit_lease(node: str, attributes: Attributes) -> None:
    if attributes.namespace != NODE_LEASES:
        raise refused(attributes, LEASE_ELSEWHERE)
    if _name(attributes) != node:
        raise refused(attributes, LEASE_OF_ANOTHER)


def admit_csi_node(node: str, attributes: Attributes) -> None:
    if _name(attributes) != node:
        raise refused(attributes, CSI_NODE_OF_ANOTHER)


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
    meta = {key: each for key, each in part(claim, "metadata").items() if key not in _BOOKKEEPING}
    status = {key: each for key, each in part(claim, "status").items() if key not in _OF_KUBELETS}
    return claim | {"metadata": meta, "status": status}


_BOOKKEEPING = ("resourceVersion", "managedFields")
