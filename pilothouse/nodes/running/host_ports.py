"""Which pods have which ports of simulated nodes: a kubelet refuses a pod whose ports are taken."""

from __future__ import annotations

from pilothouse.kinds.pods import HostPort, host_port_conflicts, host_ports
from pilothouse.machinery.objects import Json
from pilothouse.nodes.pods.world import Refusal

_REFUSED = Refusal(
    "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
)


class HostPorts:
    _of: dict[str, dict[str, frozenset[HostPort]]]  # by node and pod; only those that have any

    def __init__(self) -> None:
        self._of = {}

    def take(self, node: str, key: str, pod: Json, *, runs: bool) -> Refusal | None:
        """Give the pod the ports that it asks for. Return why it does not get them; one that runs has them already."""
        wanted = frozenset(host_ports(pod.get("spec") or {}))
        if not wanted:
            return None
        if not runs and any(self._is_taken(node, each) for each in wanted):
            return _REFUSED
        self._of.setdefault(node, {})[key] = wanted
        return None

    def give_back(self, node: str, key: str) -> None:
        """Whatever the pod has."""
        taken = self._of.get(node, {})
        if taken.pop(key, None) is not None and not taken:
            del self._of[node]

    def _is_taken(self, node: str, wanted: HostPort) -> bool:
        protocol, address, number = wanted
        others = (port for ports in self._of.get(node, {}).values() for port in ports)
        return host_port_conflicts(address, (at for other, at, port in others if (other, port) == (protocol, number)))
