"""The server of the built-in groups."""

from __future__ import annotations

from dataclasses import dataclass

from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.server.config import GenericConfig


@dataclass(frozen=True, slots=True)
class KubeConfig:
    """What only the built-in groups need to know."""

    generic: GenericConfig
    event_ttl: float = 3600.0
    service_cluster_ip_ranges: tuple[str, ...] = ("10.0.0.0/24",)
    service_node_ports: range = range(30000, 32768)
    allow_privileged: bool = False
    advertise_address: str = "127.0.0.1"


class KubeServer:
    def __init__(self, config: KubeConfig, *, delegate: Handler) -> None:
        self.generic = config.generic.new_server("kube-apiserver", delegate)
