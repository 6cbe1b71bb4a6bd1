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
    # Admission is the same for custom resources; what it asks about is stored by the kube server.
    extensions.admission.plugins = kube.admission.plugins
    return Aggregator(config.generic, delegate=kube.generic)
