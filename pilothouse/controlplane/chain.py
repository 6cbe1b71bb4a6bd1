"""The server chain: aggregator → kube → extensions → not found.

Each server handles its own paths and passes other requests to its delegate.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

from pilothouse.aggregator.api_services_to_register import APIServicePriority, Priorities
from pilothouse.aggregator.proxy.handler import ProxyConfig
from pilothouse.aggregator.proxy.transport import ProxyClientCertificate, Transports
from pilothouse.aggregator.server import Aggregator, AggregatorConfig
from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.discovery.manager import GroupDocuments
from pilothouse.apiserver.endpoints.api_groups import install_api_group
from pilothouse.apiserver.filters.recent_requests import PATH as RECENT_REQUESTS
from pilothouse.apiserver.rest_client_metrics import REST_CLIENT_METRICS
from pilothouse.apiserver.server.lifecycle import not_found
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.apiserver.storage.backup.store_endpoint import PATH as STORE
from pilothouse.apiserver.storage.backup.store_endpoint import StoreEndpoint
from pilothouse.client.rest.metrics import count_requests_in
from pilothouse.controlplane.bench import with_test_bench
from pilothouse.controlplane.certificates.ensure import simulated_kubelet
from pilothouse.controlplane.cluster_components import install_cluster_components
from pilothouse.controlplane.config import Config
from pilothouse.controlplane.leader_election import install_leader_election
from pilothouse.controlplane.loopback import Loopback
from pilothouse.extensions.server import ExtensionsServer
from pilothouse.kube.core.services.lister import ServiceLister
from pilothouse.kube.server import KubeServer
from pilothouse.machinery.names import GroupVersion


def create_server_chain(config: Config) -> Aggregator:
    count_requests_in(REST_CLIENT_METRICS)
    serving = config.options.secure_serving
    address = ip_address(serving.bind_address)
    host = "::1" if address.is_unspecified else str(address)
    loopback = Loopback(
        config.chain, host=f"[{host}]:{serving.secure_port}" if ":" in host else f"{host}:{serving.secure_port}"
    )
    nobody = not_found(config.generic.lifecycle.mux_and_discovery_complete)
    extensions = ExtensionsServer(config.generic, delegate=nobody)
    delegate = with_test_bench(config.bench, config.generic, with_simulated_metrics(config, extensions.generic))
    kube = KubeServer(config.kube, delegate=delegate, client=loopback.client)
    # Custom resources share the admission plugins, whose configuration objects the kube server stores.
    extensions.admission.plugins = kube.admission.plugins
    aggregator_config = AggregatorConfig(
        config.generic,
        client=loopback.client,
        definitions=extensions.definitions if extensions.crd_api_enabled else None,
        admission=kube.admission,
        priorities=API_VERSION_PRIORITIES,
        proxy=ProxyConfig(
            config.generic.services,
            Transports(ProxyClientCertificate(config.proxy_client)),
            reject_redirects=config.options.aggregator.reject_forwarding_redirect,
            run_options=config.generic.run_options,
        ),
        proxy_client_is_given=bool(config.options.aggregator.proxy_client_cert_file),
        services=ServiceLister(kube.registries),
    )
    aggregator = Aggregator(aggregator_config, delegate=kube.generic)
    loopback.bind(aggregator.generic)
    if config.chain.recent is not None:
        aggregator.generic.mux.handle(RECENT_REQUESTS, config.chain.recent.answer, listed=False)
    aggregator.generic.mux.handle(STORE, StoreEndpoint(config.snapshots).answer, listed=False)
    config.snapshots.bystanders = loopback.gate
    install_leader_election(kube.generic, config, loopback.client)
    install_cluster_components(aggregator.generic, config.options, loopback)
    return aggregator


def with_simulated_metrics(config: Config, delegate: GenericAPIServer) -> GenericAPIServer:
    """Put metrics.k8s.io in front of the delegate if nodes are simulated."""
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


_GROUPS: dict[str, tuple[int, dict[str, int]]] = {
    "": (18000, {"v1": 1}),
    "apps": (17800, {"v1": 15}),
    "events.k8s.io": (17750, {"v1": 15, "v1beta1": 5}),
    "authentication.k8s.io": (17700, {"v1": 15, "v1beta1": 9, "v1alpha1": 1}),
    "authorization.k8s.io": (17600, {"v1": 15}),
    "autoscaling": (17500, {"v2": 30, "v1": 15, "v2beta1": 9, "v2beta2": 1}),
    "batch": (17400, {"v1": 15, "v1beta1": 9, "v2alpha1": 9}),
    "certificates.k8s.io": (17300, {"v1": 15, "v1beta1": 9, "v1alpha1": 1}),
    "networking.k8s.io": (17200, {"v1": 15, "v1beta1": 9}),
    "policy": (17100, {"v1": 15, "v1beta1": 9}),
    "rbac.authorization.k8s.io": (17000, {"v1": 15}),
    "storage.k8s.io": (16800, {"v1": 15, "v1beta1": 9, "v1alpha1": 1}),
    "admissionregistration.k8s.io": (16700, {"v1": 15, "v1beta1": 12, "v1alpha1": 9}),
    "apiextensions.k8s.io": (16700, {"v1": 15}),
    "scheduling.k8s.io": (16600, {"v1": 15, "v1alpha2": 2}),
    "coordination.k8s.io": (16500, {"v1": 15, "v1beta1": 13, "v1alpha2": 12}),
    "node.k8s.io": (16300, {"v1": 15, "v1beta1": 9, "v1alpha1": 1}),
    "discovery.k8s.io": (16200, {"v1": 15, "v1beta1": 12}),
    "resource.k8s.io": (16200, {"v1": 21, "v1beta2": 15, "v1beta1": 9, "v1alpha3": 1}),
    "flowcontrol.apiserver.k8s.io": (16100, {"v1": 21, "v1beta3": 18, "v1beta2": 15, "v1beta1": 12, "v1alpha1": 9}),
    "internal.apiserver.k8s.io": (16000, {"v1alpha1": 9}),
    "storagemigration.k8s.io": (15800, {"v1": 15, "v1beta1": 9, "v1alpha1": 9}),
    "metrics.k8s.io": (100, {"v1beta1": 100}),
    "testing.pilothouse.dev": (50, {"v1alpha1": 15}),
}
"""group -> (group priority, version -> version priority). Higher priorities come first. Only listed versions get an
APIService."""

API_VERSION_PRIORITIES: Priorities = {
    GroupVersion(group, version): APIServicePriority(group_priority, version_priority)
    for group, (group_priority, versions) in _GROUPS.items()
    for version, version_priority in versions.items()
}
