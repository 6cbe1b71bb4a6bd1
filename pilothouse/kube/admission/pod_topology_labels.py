"""PodTopologyLabels: copies the zone and region labels of the node to its pods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, labels_of, metadata, text

GetNode: TypeAlias = Callable[[str], Awaitable[Json | None]]

_PODS = GroupResource("", "pods")
_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels(Handler):
    """Handles bindings, too: the pod takes over the labels of its binding."""

    name = "PodTopologyLabels"
    resources = (_PODS,)
    operations = (Operation.CREATE,)

    def __init__(self, get_node: GetNode) -> None:
        self._get_node = get_node

    async def admit(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource != _PODS or attributes.obj is None:
            return
        node = await self._get_node(name) if (name := _node_name(attributes)) else None
        result = {label: value for label, value in labels_of(node or {}).items() if label in _LABELS}
        if result:
            metadata(attributes.obj)["labels"] = labels_of(attributes.obj) | result


def _node_name(attributes: Attributes) -> str:
    obj = attributes.obj or {}
    if attributes.subresource == "binding":
        return text(obj, "target", "name") if text(obj, "target", "kind") == "Node" else ""
    return "" if attributes.subresource else text(obj, "spec", "nodeName")
