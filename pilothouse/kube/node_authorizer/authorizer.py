"""The node authorizer: reads for pods on the node, writes of the kubelet's own objects; otherwise no opinion."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import NO_RULES, Answer, Attributes, Decision, Rules
from pilothouse.apiserver.http import LONGEST_READ
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.node_authorizer.graph import NodeGraph, ReferredObject
from pilothouse.kube.rbac.bootstrap_policy import bootstrap_objects
from pilothouse.kube.rbac.rules import Role
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import name_of
from pilothouse.machinery.selectors import fields
from pilothouse.machinery.selectors.requirement import InvalidSelector

NODE_LEASES = "kube-node-lease"
LEASE_ELSEWHERE = f"can only access leases in the {quote(NODE_LEASES)} system namespace"
LEASE_OF_ANOTHER = "can only access node lease with the same name as the requesting node"
CSI_NODE_OF_ANOTHER = "can only access CSINode with the same name as the requesting node"

_ALLOW = Answer(Decision.ALLOW)
_NO_OPINION = Answer(Decision.NO_OPINION)
_READ = ("get", "list", "watch")
_OWN = ("get", "create", "update", "patch", "delete")
_NODE = "spec.nodeName"
_FOR_ACCOUNTS = ("KubeletServiceAccountTokenForCredentialProviders", "PodCertificateRequest")
"""Features that require kubelets to read service accounts."""
_SLICE_VERBS = "get, watch, list, create, update, patch, delete, deletecollection"

NODES_GROUP = "system:nodes"

_PREFIX = "system:node:"


def _no(reason: str) -> Answer:
    return Answer(Decision.NO_OPINION, reason)


class NodeAuthorizer:
    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph
        self._by_resource: dict[GroupResource, Callable[[str, Attributes], Answer]] = {
            GroupResource("", "secrets"): self._read_in_namespace,
            GroupResource("", "configmaps"): self._read_in_namespace,
            GroupResource("", "persistentvolumeclaims"): self._claim,
            GroupResource("", "persistentvolumes"): self._get,
            GroupResource("resource.k8s.io", "resourceclaims"): self._get,
            GroupResource("storage.k8s.io", "volumeattachments"): self._get,
            GroupResource("", "serviceaccounts"): self._service_account,
            GroupResource("coordination.k8s.io", "leases"): _lease,
            GroupResource("storage.k8s.io", "csinodes"): _csi_node,
            GroupResource("resource.k8s.io", "resourceslices"): self._resource_slice,
            GroupResource("", "nodes"): _node,
            GroupResource("", "pods"): self._pod,
            GroupResource("certificates.k8s.io", "podcertificaterequests"): self._pod_certificate_request,
        }

    async def authorize(self, attributes: Attributes) -> Answer:
        node = node_name_of(attributes.user)
        if node is None:
            return _NO_OPINION
        if not node:
            return _no(f"unknown node for user {quote(attributes.user.name)}")
        if attributes.is_resource:
            decide = self._by_resource.get(GroupResource(attributes.group, attributes.resource))
            if decide is not None:
                return decide(node, attributes)
        return _ALLOW if self._allowed_by_rules(attributes) else _NO_OPINION

    async def rules_for(self, user: User, namespace: str) -> Rules:
        if node_name_of(user) is None:
            return NO_RULES
        return Rules(incomplete=True, error="node authorizer does not support user rule resolution")

    @cached_property
    def _rules(self) -> Role:
        """Return the declared rules of the role system:node, independent of the stored role."""
        return next(
            Role.of(role) for role in bootstrap_objects().by_kind["ClusterRole"] if name_of(role) == "system:node"
        )

    def _allowed_by_rules(self, attributes: Attributes) -> bool:
        if not attributes.is_resource:
            return self._rules.allows_path(attributes.verb, attributes.path)
        return any(self._rules.matching(attributes.verb, attributes.group, attributes.resource, attributes.subresource))

    def _related(self, node: str, attributes: Attributes) -> Answer:
        if not attributes.name:
            return _no("No Object name found")
        if self._graph.is_related(node, ReferredObject(attributes.resource, attributes.namespace, attributes.name)):
            return _ALLOW
        return _no(f"no relationship found between node '{node}' and this object")

    def _get(self, node: str, attributes: Attributes) -> Answer:
        if attributes.verb != "get":
            return _no("can only get individual resources of this type")
        return _no("cannot get subresource") if attributes.subresource else self._related(node, attributes)

    def _read_in_namespace(self, node: str, attributes: Attributes) -> Answer:
        if attributes.verb not in _READ:
            return _no("can only read resources of this type")
        if attributes.subresource:
            return _no("cannot read subresource")
        return (
            self._related(node, attributes)
            if attributes.namespace
            else _no("can only read namespaced object of this type")
        )

    def _claim(self, node: str, attributes: Attributes) -> Answer:
        if attributes.subresource != "status":
            return self._get(node, attributes)
        return self._related(node, attributes) if _is_update(attributes) else _no("can only get/update/patch this type")

    def _service_account(self, node: str, attributes: Attributes) -> Answer:
        if attributes.verb == "get" and not attributes.subresource:
            if not any(map(enabled, _FOR_ACCOUNTS)):
                return _no("not allowed to get service accounts")
            return self._read_in_namespace(node, attributes)
        if attributes.verb != "create" or not attributes.name:
            return _no("can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        return self._related(node, attributes)

    def _resource_slice(self, node: str, attributes: Attributes) -> Answer:
        if attributes.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        if attributes.verb == "create":
            return _ALLOW
        if attributes.verb in ("get", "update", "patch", "delete"):
            return self._related(node, attributes)
        if attributes.verb not in ("watch", "list", "deletecollection"):
            return _no(f"only the following verbs are allowed for a ResourceSlice: {_SLICE_VERBS}")
        if _selects_node(attributes, node):
            return _ALLOW
        return _no("can only list/watch/deletecollection resourceslices with nodeName field selector")

    def _pod_certificate_request(self, node: str, attributes: Attributes) -> Answer:
        if not enabled("PodCertificateRequest"):
            return _NO_OPINION
        if attributes.subresource:
            return _no("nodes may not access the status subresource of PodCertificateRequests")
        if attributes.verb == "create":
            return _ALLOW
        if attributes.verb == "get":
            return self._related(node, attributes)
        if attributes.verb not in ("list", "watch"):
            return _no(f"nodes may not {attributes.verb} podcertificaterequests")
        if _selects_node(attributes, node):
            return _ALLOW
        return _no("can only list/watch podcertificaterequests with nodeName field selector")

    def _pod(self, node: str, attributes: Attributes) -> Answer:
        if attributes.subresource == "status":
            return _ALLOW if _is_update(attributes) else _NO_OPINION
        if attributes.subresource == "eviction":
            return _ALLOW if attributes.verb == "create" else _NO_OPINION
        if attributes.subresource:
            return _NO_OPINION
        if attributes.verb == "get":
            return self._related(node, attributes)
        if attributes.verb in ("list", "watch"):
            if _selects_node(attributes, node):
                return _ALLOW
            if attributes.name:
                return self._related(node, attributes)
            return _no("can only list/watch pods with spec.nodeName field selector")
        return _ALLOW if attributes.verb in ("create", "delete") else _NO_OPINION


def _is_update(attributes: Attributes) -> bool:
    return attributes.verb in ("update", "patch")


def _selects_node(attributes: Attributes, node: str) -> bool:
    if len(attributes.field_selector) > LONGEST_READ:
        return False  # kubelets never send such selectors, and parsing would block the event loop
    try:
        return fields.Requirement(_NODE, node) in fields.parse(attributes.field_selector).requirements
    except InvalidSelector:
        return False


def _lease(node: str, attributes: Attributes) -> Answer:
    if attributes.verb not in _OWN:
        return _no("can only get, create, update, patch, or delete a node lease")
    if attributes.namespace != NODE_LEASES:
        return _no(LEASE_ELSEWHERE)
    if attributes.verb != "create" and attributes.name != node:
        return _no(LEASE_OF_ANOTHER)
    return _ALLOW


def _csi_node(node: str, attributes: Attributes) -> Answer:
    if attributes.verb not in _OWN:
        return _no("can only get, create, update, patch, or delete a CSINode")
    if attributes.subresource:
        return _no("cannot authorize CSINode subresources")
    if attributes.verb != "create" and attributes.name != node:
        return _no(CSI_NODE_OF_ANOTHER)
    return _ALLOW


def _node(node: str, attributes: Attributes) -> Answer:
    if attributes.subresource:
        return _ALLOW if attributes.subresource == "status" and _is_update(attributes) else _NO_OPINION
    if attributes.verb == "create" or _is_update(attributes):
        return _ALLOW
    if attributes.verb not in _READ:
        return _NO_OPINION
    if attributes.name == node:
        return _ALLOW
    target = f"'{attributes.name}'" if attributes.name else "all nodes"
    return _no(f"node '{node}' cannot read {target}, only its own Node object")


def node_name_of(user: User) -> str | None:
    """Return the node's name: None if the user is not a node, empty for a node without a name."""
    if NODES_GROUP not in user.groups or not user.name.startswith(_PREFIX):
        return None
    return user.name.removeprefix(_PREFIX)
