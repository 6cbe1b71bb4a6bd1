"""TaintNodesByCondition: new nodes get the not-ready taint."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.kube.admission.default_toleration_seconds import NOT_READY
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import items

_NODES = GroupResource("", "nodes")


class TaintNodesByCondition(Handler):
    name = "TaintNodesByCondition"
    resources = (_NODES,)
    operations = (Operation.CREATE,)

    async def admit(self, attributes: Attributes) -> None:
        node = attributes.obj
        if node is None or attributes.resource.group_resource != _NODES or attributes.subresource:
            return
        taints = items(node, "spec", "taints")
        if not any(taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
            node.setdefault("spec", {})["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]
