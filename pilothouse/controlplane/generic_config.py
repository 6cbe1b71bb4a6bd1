"""Configuration shared by the three servers: storage, authentication, features, filter chain."""

from __future__ import annotations

from pilothouse.apiserver.authn.request_header import STANDARD
from pilothouse.apiserver.filters.chain import ChainConfig
from pilothouse.apiserver.filters.priority_and_fairness import FlowControl
from pilothouse.apiserver.filters.recent_requests import RecentRequests
from pilothouse.apiserver.flowcontrol.controller import FlowController
from pilothouse.apiserver.server.checks import provider_checks, storage_checks
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.webhook.service_resolver import ServiceAddress, ServiceResolver
from pilothouse.controlplane.authentication.setup import Authentication
from pilothouse.controlplane.authorization.setup import Authorization
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.serving import FrontProxy
from pilothouse.controlplane.serving_place import ServingPlace
from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.config import ServiceAccountConfig
from pilothouse.kube.core.services.lister import ServiceLister
from pilothouse.kube.core.services.resolver import LoopbackResolver, service_resolver
from pilothouse.kube.registries import Registries
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ConfigParts:
    """Inputs of the generic configuration and of the kube server's configuration."""

    options: CompletedOptions
    registries: Registries
    authentication: Authentication
    authorization: Authorization
    service_accounts: ServiceAccountConfig
    address: PublicAddress
    front_proxy: FrontProxy
    place: ServingPlace


def generic_config(parts: ConfigParts) -> GenericConfig:
    options, store = parts.options, parts.registries.store
    return GenericConfig(
        store=store,
        key_prefix=options.etcd.prefix,
        health_checks=(
            *storage_checks(
                store, timeout=options.etcd.healthcheck_timeout, ready_timeout=options.etcd.readycheck_timeout
            ),
            *provider_checks(store),
            *parts.place.health_checks,
        ),
        resources=parts.registries.enabled,
        features=parts.registries.features,
        authenticator=parts.authentication.authenticator,
        tokens=parts.authentication.tokens,
        api_audiences=parts.service_accounts.audiences,
        flow_control=FlowController.of(options.generic),
        authorizer=parts.authorization.authorizer,
        run_options=options.generic,
        admission_plugins=options.admission.enabled,
        flags=options.shown(),
        services=build_service_resolver(options, parts.registries, parts.address),
        peers=parts.place.peers,
    )


def filter_config(parts: ConfigParts, generic: GenericConfig) -> ChainConfig:
    send_retry_after = generic.run_options.shutdown_send_retry_after
    flow_control: FlowControl | None = None
    if generic.flow_control is not None:
        # As upstream, a request queues for at most a quarter of the request timeout.
        longest_wait = generic.run_options.request_timeout / 4
        flow_control = FlowControl(generic.flow_control, parts.registries.stats, longest_wait)
    return ChainConfig(
        authenticator=generic.authenticator,
        authorizer=generic.authorizer,
        anonymous=parts.authentication.anonymous.enabled,
        anonymous_paths=frozenset(parts.authentication.anonymous.paths),
        run_options=generic.run_options,
        features=generic.features,
        front_proxy=tuple({STANDARD, parts.front_proxy.headers}),
        flow_control=flow_control,
        is_terminating=lambda: send_retry_after and generic.lifecycle.not_accepting_new_request.signaled,
        recent=RecentRequests(limit) if (limit := parts.options.pilothouse.kept_requests) else None,
    )


_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Wildcard address -> loopback address to connect to."""


def build_service_resolver(
    options: CompletedOptions, registries: Registries, address: PublicAddress
) -> ServiceResolver:
    """Build the resolver. `address.port` is read on use, because the port is known only after listening."""
    bound = options.secure_serving.bind_address
    chosen = options.aggregator.enable_routing if "enable-aggregator-routing" in options.given else None
    return LoopbackResolver(
        service_resolver(ServiceLister(registries), endpoints=chosen),
        own=lambda: ServiceAddress(_ANY_ADDRESS.get(bound, bound), address.port),
    )
