"""How this server reaches the Services of its cluster, as the options say."""

from __future__ import annotations

from pilothouse.apiserver.webhook.service_resolver import ServiceAddress, ServiceResolver
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.core.services.lister import ServiceLister
from pilothouse.kube.core.services.resolver import LoopbackResolver, service_resolver
from pilothouse.kube.registries import Registries

_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""The address to connect to where the server listens on all addresses."""


def build_service_resolver(
    options: CompletedOptions, registries: Registries, address: PublicAddress
) -> ServiceResolver:
    """`address` knows the port once the server listens."""
    bound = options.secure_serving.bind_address
    chosen = options.aggregator.enable_routing if "enable-aggregator-routing" in options.given else None
    return LoopbackResolver(
        service_resolver(ServiceLister(registries), endpoints=chosen),
        own=lambda: ServiceAddress(_ANY_ADDRESS.get(bound, bound), address.port),
    )
