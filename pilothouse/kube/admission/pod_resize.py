"""PodResizeValidator: allows a resize on Linux nodes only, up to the allocatable resources of the node."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Operation, refused
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
