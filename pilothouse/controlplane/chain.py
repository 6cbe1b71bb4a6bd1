"""The server chain: aggregator → kube → extensions → not found.

Each server answers what it knows and calls its delegate for the rest.
"""

from __future__ import annotations

from pilothouse.aggregator.server import Aggregator
from pilothouse.apiserver.server.not_found import not_found
from pilothouse.controlplane.config import Config
from pilothouse.extensions.server import ExtensionsServer
from pilothouse.kube.server import KubeServer


def create_server_chain(config: Config) -> Aggregator:
    nobody = not_found(config.generic.lifecycle.mux_and_discovery_complete)
    extensions = ExtensionsServer(config.generic, delegate=nobody)
    kube = KubeServer(config.kube, delegate=extensions.generic)
    return Aggregator(config.generic, delegate=kube.generic)
