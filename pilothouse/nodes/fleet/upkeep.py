"""Updates of node objects, as by their kubelets."""

from __future__ import annotations

from pilothouse.client.rest.options import PatchType
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import NODES
from pilothouse.machinery.objects import Json, items, name_of
from pilothouse.nodes.behavior.behaviors import Behaviors
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.fleet.addresses import NodeAddresses
from pilothouse.nodes.fleet.node_object import NOT_READY_TAINT, cidr_of, labels_to_add, new_node, node_status


class Upkeep:
    """Methods raise StatusError, ConnectionFailed, InvalidResponse or NoMoreAddresses."""

    def __init__(
        self, context: ControllerContext, config: SimulationConfig, behaviors: Behaviors, addresses: NodeAddresses
    ) -> None:
        self._nodes = context.client.for_resource(NODES)
        self._clock, self._config = context.clock, config
        self._behaviors, self._addresses = behaviors, addresses

    async def create(self, number: int) -> None:
        """Create the node with this number in Ready state."""
        node = new_node(number, self._config)
        cidr = self._addresses.cidr(node)
        await self._nodes.create(
            {**node, "spec": {"podCIDR": cidr, "podCIDRs": [cidr]}, "status": self._status(node, heartbeat=True)}
        )

    async def complete(self, node: Json) -> Json:
        """Add missing labels and spec fields, and return the node."""
        patch: Json = {}
        if labels := labels_to_add(node):
            patch["metadata"] = {"labels": labels}
        if spec := self._missing_in_spec(node):
            patch["spec"] = spec
        return await self._nodes.patch(name_of(node), patch, PatchType.MERGE) if patch else node

    async def report(self, node: Json, *, heartbeat: bool) -> Json:
        """Write the status if changed, or in any case with `heartbeat`, and return the node."""
        stored, status = node.get("status") or {}, self._status(node, heartbeat=heartbeat)
        changed = {field: value for field, value in status.items() if stored.get(field) != value}
        if not heartbeat and _say_the_same(changed.get("conditions"), stored.get("conditions")):
            changed.pop("conditions", None)
        if not changed:
            return node
        patch = {"status": changed}
        return await self._nodes.patch(name_of(node), patch, PatchType.STRATEGIC, subresource="status")

    def _status(self, node: Json, *, heartbeat: bool) -> Json:
        behavior, address = self._behaviors.of_node(node), self._addresses.address(node)
        return node_status(node, address, behavior, self._config, self._clock.wall(), heartbeat=heartbeat)

    def _missing_in_spec(self, node: Json) -> Json:
        spec: Json = {}
        if not cidr_of(node):
            cidr = self._addresses.cidr(node)
            spec |= {"podCIDR": cidr, "podCIDRs": [cidr]}
        taints = items(node, "spec", "taints")
        kept = [taint for taint in taints if taint.get("key") != NOT_READY_TAINT]
        if len(kept) != len(taints) and not self._behaviors.of_node(node).not_ready:
            spec["taints"] = kept or None
        return spec


def _say_the_same(wanted: list[Json] | None, stored: list[Json] | None) -> bool:
    """Return whether all wanted conditions are stored, among others and in any order."""
    conditions = {condition["type"]: condition for condition in stored or ()}
    return all(
        (conditions.get(condition["type"]) or {}).get(field) == condition[field]
        for condition in wanted or ()
        for field in ("status", "reason", "message")
    )
