"""Updates of pods against their nodes.

PodResizeValidator allows a resize on Linux nodes only, up to the allocatable resources of the node.
NodeDeclaredFeatureValidator allows an update only if the node declares the features that the update needs.
"""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Operation, refused
from pilothouse.apiserver.server.features import enabled
from pilothouse.kinds.nodes import declared_features, features_of_update
from pilothouse.kube.admission.pods import NodeReader
from pilothouse.kube.admission.quota.pods import pod_requests
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, labels_of, metadata, part, text
from pilothouse.machinery.quantity import ZERO, parse_quantity

_PODS = GroupResource("", "pods")
_OS_LABEL = "kubernetes.io/os"


class PodResizeValidator(NodeReader):
    name = "PodResizeValidator"
    resources = (_PODS,)
    operations = (Operation.UPDATE,)

    async def validate(self, attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or attributes.resource.group_resource != _PODS or attributes.subresource != "resize":
            return
        name = text(pod, "spec", "nodeName")
        if not name or metadata(pod).get("generation") == metadata(attributes.old or {}).get("generation"):
            return
        node = await self._get_node(name)
        if node is None:
            raise refused(attributes, f"node {quote(name)} not found")
        system = labels_of(node).get(_OS_LABEL, "linux")
        if system != "linux":
            reason = f"pod resize is only supported on linux nodes, node {quote(name)} is {quote(system)}"
            raise _because(refused(attributes, reason), "UnsupportedPlatform")
        if shortage := _shortage(pod, node):
            reason = f"node didn't have enough allocatable resources: {shortage}"
            raise _because(refused(attributes, reason), "NodeCapacity")


class NodeDeclaredFeatureValidator(NodeReader):
    name = "NodeDeclaredFeatureValidator"
    resources = (_PODS,)
    operations = (Operation.UPDATE,)

    async def validate(self, attributes: Attributes) -> None:
        pod, old = attributes.obj, attributes.old
        if pod is None or old is None or attributes.resource.group_resource != _PODS:
            return
        if attributes.subresource not in ("", "resize") or not enabled("NodeDeclaredFeatures"):
            return
        name = text(pod, "spec", "nodeName")
        if not name or metadata(pod).get("generation") == metadata(old).get("generation"):
            return
        wanted = features_of_update(part(pod, "spec"), part(old, "spec"))
        if not wanted:
            return
        node = await self._get_node(name)
        if node is None:
            raise refused(attributes, f"node {quote(name)} not found")
        if missing := ", ".join(sorted(wanted - declared_features(node))):
            reason = f"pod update requires features {missing} which are not available on node {quote(name)}"
            raise refused(attributes, reason)


def _shortage(pod: Json, node: Json) -> str:
    requests, allocatable = pod_requests(part(pod, "spec")), part(node, "status", "allocatable")
    result = []
    for name, scale in (("cpu", -3), ("memory", 0)):
        requested, available = requests.get(name, ZERO), parse_quantity(allocatable.get(name) or "0")
        if requested > available:
            amounts = f"requested: {requested.scaled_value(scale)}, allocatable: {available.scaled_value(scale)}"
            result.append(f"{name}, {amounts}")
    return "; ".join(result)


def _because(error: Forbidden, reason: str) -> Forbidden:
    error.details = (error.details or {}) | {"causes": [{"reason": reason}]}
    return error
