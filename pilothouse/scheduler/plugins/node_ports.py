"""NodePorts: one pod per node can use a host port. A port on 0.0.0.0 conflicts with the port on every address."""

from __future__ import annotations

from pilothouse.kinds.pods import host_port_conflicts
from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import Plugin, PreFiltered


class NodePorts(Plugin):
    name = "NodePorts"

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self.events = (
            EventHint(Subject.ASSIGNED_POD, Action.DELETE, _frees_a_port),
            EventHint(Subject.NODE, Action.ADD),
        )
        self._rejection = self.reject("node(s) didn't have free ports for the requested pod ports")

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        if not (wanted := pod.host_ports):
            return None
        rejection = self._rejection

        def check(node: NodeInfo) -> Rejection | None:
            for protocol, address, number in wanted:
                if host_port_conflicts(address, node.ports.get((protocol, number)) or ()):
                    return rejection
            return None

        return check


def _frees_a_port(pod: PodInfo, old: Json | None, new: Json | None) -> bool:
    freed = {(protocol, number) for protocol, _, number in PodInfo(old).host_ports} if old else set()
    return any((protocol, number) in freed for protocol, _, number in pod.host_ports)
