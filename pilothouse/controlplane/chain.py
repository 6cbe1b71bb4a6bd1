"""The server chain: aggregator → kube → extensions → not found.

Each server answers what it knows and calls its delegate for the rest.
"""

from __future__ import annotations

from ipaddress import ip_address

from pilothouse.aggregator.proxy.handler import ProxyConfig
from pilothouse.aggregator.proxy.transport import ProxyClientCertificate, Transports
from pilothouse.aggregator.server import Aggregator, AggregatorConfig
from pilothouse.apiserver.filters.recent_requests import PATH as RECENT_REQUESTS
from pilothouse.apiserver.rest_client_metrics import REST_CLIENT_METRICS
from pilothouse.apiserver.server.not_found import not_found
from pilothouse.apiserver.storage.backup.store_endpoint import PATH as STORE
from pilothouse.apiserver.storage.backup.store_endpoint import StoreEndpoint
from pilothouse.client.rest.metrics import count_requests_in
from pilothouse.controlplane.bench import with_test_bench
from pilothouse.controlplane.config import Config
from pilothouse.controlplane.leader_election import install_leader_election
from pilothouse.controlplane.loopback import Loopback
from pilothouse.controlplane.moving_parts import install_moving_parts
from pilothouse.controlplane.options.serving import SecureServingOptions
from pilothouse.controlplane.priorities import API_VERSION_PRIORITIES
from pilothouse.controlplane.simulated_metrics import with_simulated_metrics
from pilothouse.extensions.server import ExtensionsServer
from pilothouse.kube.core.services.lister import ServiceLister
from pilothouse.kube.server import KubeServer


def create_server_chain(config: Config) -> Aggregator:
    count_requests_in(REST_CLIENT_METRICS)
    loopback = Loopback(config.chain, host=_own_host(config.options.secure_serving))
    nobody = not_found(config.generic.lifecycle.mux_and_discovery_complete)
    extensions = ExtensionsServer(config.generic, delegate=nobody)
    delegate = with_test_bench(config.bench, config.generic, with_simulated_metrics(config, extensions.generic))
    kube = KubeServer(config.kube, delegate=delegate, client=loopback.client)
    # Admission is the same for custom resources; what it asks about is stored by the kube server.
    extensions.admission.plugins = kube.admission.plugins
    aggregator_config = AggregatorConfig(
        config.generic,
        client=loopback.client,
        definitions=extensions.definitions if extensions.crd_api_enabled else None,
        admission=kube.admission,
        priorities=API_VERSION_PRIORITIES,
        proxy=_proxy(config),
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
    install_moving_parts(aggregator.generic, config.options, loopback)
    return aggregator


def _proxy(config: Config) -> ProxyConfig:
    """How the servers of other API groups are reached."""
    return ProxyConfig(
        config.generic.services,
        Transports(ProxyClientCertificate(config.proxy_client)),
        reject_redirects=config.options.aggregator.reject_forwarding_redirect,
        run_options=config.generic.run_options,
    )


def _own_host(serving: SecureServingOptions) -> str:
    """Return the address by which the server would reach itself: the loopback's, where it listens on all."""
    address = ip_address(serving.bind_address)
    host = "::1" if address.is_unspecified else str(address)
    return f"[{host}]:{serving.secure_port}" if ":" in host else f"{host}:{serving.secure_port}"
