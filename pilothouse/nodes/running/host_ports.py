"""Host ports of simulated nodes: pods with conflicting ports are rejected, as by a kubelet."""

from __future__ import annotations

from pilothouse.kinds.pods import HostPort, host_port_conflicts, host_ports
from pilothouse.machinery.objects import Json
from pilothouse.nodes.pods.world import Refusal

_REFUSED = Refusal(
    "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
)


class HostPorts:
    _of: dict[str, dict[str, frozenset[HostPort]]]  # node → pod → ports; never empty

    def __init__(self) -> None:
        self._of = {}

    def take(self, node: str, key: str, pod: Json, *, runs: bool) -> Refusal | None:
        """Reserve the pod's ports, or return the refusal. A running pod keeps its ports."""
        wanted = frozenset(host_ports(pod.get("spec") or {}))
        if not wanted:
            return None
        if not runs and any(self._is_taken(node, each) for each in wanted):
            return _REFUSED
        self._of.setdefault(node, {})[key] = wanted
        return None

    def give_back(self, node: str, key: str) -> None:
        """Release the pod's ports."""
        taken = self._of.get(node, {})
        if taken.pop(key, None) is not None and not taken:
            del self._of[node]

    def _is_taken(self, node: str, wanted: HostPort) -> bool:
        protocol, address, number = wanted
        others = (port for ports in self._of.get(node, {}).values() for port in ports)
        return host_port_conflicts(address, (at for other, at, port in others if (other, port) == (protocol, number)))
