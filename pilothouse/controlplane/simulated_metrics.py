"""metrics.k8s.io of a server with simulated nodes: a server of the chain like the others, before custom resources."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.discovery.manager import GroupDocuments
from pilothouse.apiserver.endpoints.api_groups import install_api_group
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.controlplane.certificates.simulated_kubelet import simulated_kubelet
from pilothouse.controlplane.config import Config


def with_simulated_metrics(config: Config, delegate: GenericAPIServer) -> GenericAPIServer:
    """Return the delegate, or where nodes are simulated a server of their metrics in front of it."""
    if not config.options.simulation.nodes:
        return delegate
    from pilothouse.nodes.metrics.definitions import MetricsDefinitions
    from pilothouse.nodes.metrics.storages import metrics_group

    generic = replace(config.generic, definitions=MetricsDefinitions())
    server = generic.new_server("metrics-server", delegate)
    group = metrics_group(simulated_kubelet(Path(config.options.pilothouse.data_dir)))
    install_api_group(server, group, generic.installer(AdmissionChain()))
    server.discovery.put(GroupDocuments.of(group))
    return server
