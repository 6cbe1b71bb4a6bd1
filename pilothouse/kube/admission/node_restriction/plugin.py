"""NodeRestriction: checks the contents of writes by kubelets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation, refused
from pilothouse.kube.admission.node_restriction import own_objects
from pilothouse.kube.admission.node_restriction.credentials import NodePodCertificates, NodeTokens
from pilothouse.kube.admission.node_restriction.pods import NodePods
from pilothouse.kube.node_authorizer.authorizer import node_name_of
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource

_Admit: TypeAlias = Callable[[str, Attributes], None]
_AdmitAfterLooking: TypeAlias = Callable[[str, Attributes], Awaitable[None]]

_AT_ONCE: dict[GroupResource, _Admit] = {
    GroupResource("", "nodes"): own_objects.admit_node,
    GroupResource("", "persistentvolumeclaims"): own_objects.admit_claim_status,
    GroupResource("coordination.k8s.io", "leases"): own_objects.admit_lease,
    GroupResource("storage.k8s.io", "csinodes"): own_objects.admit_csi_node,
    GroupResource("resource.k8s.io", "resourceslices"): own_objects.admit_resource_slice,
    GroupResource("certificates.k8s.io", "certificatesigningrequests"): own_objects.admit_signing_request,
}


class NodeRestriction(Handler):
    name = "NodeRestriction"
    operations = (Operation.CREATE, Operation.UPDATE, Operation.DELETE)

    def __init__(self, pods: NodePods, tokens: NodeTokens, certificates: NodePodCertificates) -> None:
        self._after_looking: dict[GroupResource, _AdmitAfterLooking] = {
            GroupResource("", "pods"): pods.admit,
            GroupResource("", "serviceaccounts"): tokens.admit,
            GroupResource("certificates.k8s.io", "podcertificaterequests"): certificates.admit,
        }

    async def admit(self, attributes: Attributes) -> None:
        node = node_name_of(attributes.user)
        if node is None:
            return
        if not node:
            raise refused(attributes, f"could not determine node from user {quote(attributes.user.name)}")
        resource = attributes.resource.group_resource
        if resource in _AT_ONCE:
            _AT_ONCE[resource](node, attributes)
        elif resource in self._after_looking:
            await self._after_looking[resource](node, attributes)
