"""The configuration of the three servers, made from completed options. Nothing serves yet."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pilothouse.apiserver.authn.request_header import STANDARD
from pilothouse.apiserver.filters.chain import ChainConfig
from pilothouse.apiserver.filters.priority_and_fairness import FlowControl
from pilothouse.apiserver.filters.recent_requests import RecentRequests
from pilothouse.apiserver.flowcontrol.controller import FlowController
from pilothouse.apiserver.flowcontrol.metrics import FlowControlCollector
from pilothouse.apiserver.server.checks import provider_checks, storage_checks
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.resource_config import parse_runtime_config
from pilothouse.apiserver.serving.certificate_files import KeyPair
from pilothouse.apiserver.storage.interface import Store
from pilothouse.apiserver.storage.snapshots import Snapshots
from pilothouse.apiserver.webhook.service_resolver import ServiceResolver
from pilothouse.controlplane.authentication.setup import Authentication, set_up_authentication
from pilothouse.controlplane.authorization.setup import Authorization, set_up_authorization
from pilothouse.controlplane.bench import new_bench
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.controlplane.certificates.simulated_kubelet import simulated_kubelet
from pilothouse.controlplane.front_proxy import FrontProxy, front_proxy
from pilothouse.controlplane.options.completion import CompletedOptions, host_address
from pilothouse.controlplane.service_accounts import service_account_config
from pilothouse.controlplane.services import build_service_resolver
from pilothouse.controlplane.serving import client_cas
from pilothouse.controlplane.serving_place import ALONE, ServingPlace
from pilothouse.kube.admission.config import AdmissionConfig
from pilothouse.kube.bootstrap import endpoint_leases
from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.bootstrap.cluster_authentication_trust import ClusterAuthenticationInfo
from pilothouse.kube.served import Registries
from pilothouse.kube.server import KubeConfig
from pilothouse.kube.serviceaccount.config import ServiceAccountConfig
from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from pilothouse.apiserver.tracing.recording import RecordingTracer
    from pilothouse.bench.bench import Bench
    from pilothouse.bench.scope import ServerScope
    from pilothouse.controlplane.audit import Audit


Background: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Config:
    options: CompletedOptions
    generic: GenericConfig
    kube: KubeConfig
    chain: ChainConfig
    proxy_client: KeyPair
    """The certificate that is shown to the servers of other API groups."""
    snapshots: Snapshots
    """What is stored, to be saved and restored."""
    place: ServingPlace = ALONE
    bench: Bench | None = None
    """What makes the server misbehave, with --testing."""
    background: Mapping[str, Background] = field(default_factory=dict)
    """The tasks that run beside the server until it stops, by name."""


def new_config(
    options: CompletedOptions, store: Store, place: ServingPlace = ALONE, scope: ServerScope | None = None
) -> Config:
    """`scope` is that of a server with --testing. Raises ValueError or OSError when a file that an option names makes
    no sense."""
    features = options.features.gates
    features.publish()
    registries = Registries(
        store,
        root=options.etcd.prefix,
        event_ttl=int(options.misc.event_ttl),
        enabled=parse_runtime_config(options.api_enablement.runtime_config),
        features=features,
    )
    address = PublicAddress(_endpoint_ip(options), options.secure_serving.secure_port)
    proxy = front_proxy(options)
    authorization = set_up_authorization(options.authorization)
    accounts = service_account_config(options)
    authentication = set_up_authentication(options, accounts, registries, proxy)
    parts = _Parts(options, registries, authentication, authorization, accounts, address, proxy, place)
    generic, audit = _generic(parts), _audit(options)
    lifetimes = {"/events/": registries.event_ttl, "/masterleases/": endpoint_leases.TTL}
    snapshots = Snapshots(registries.store, root=registries.root, lifetimes=lifetimes)
    bench = new_bench(scope, generic, snapshots)
    tracer = _tracer(options)
    chain = replace(_chain(parts, generic), auditing=audit.auditing if audit else None, bench=bench, tracer=tracer)
    kube = _kube(parts, generic)
    background = {**authentication.background, **authorization.background, **kube.admission.static.background}
    if audit:
        background["audit"] = audit.run
    if tracer:
        background["traces"] = tracer.run
    if generic.flow_control is not None:
        background["metrics of flow control"] = FlowControlCollector(generic.flow_control).run
    return Config(options, generic, kube, chain, proxy.client, snapshots, place, bench, background)


def _audit(options: CompletedOptions) -> Audit | None:
    if not options.audit.policy_file:
        return None
    from pilothouse.controlplane.audit import build_audit  # brings an HTTP client, which others do not need

    return build_audit(options.audit)


def _tracer(options: CompletedOptions) -> RecordingTracer | None:
    configuration = options.traces.configuration
    if configuration is None:
        return None
    from pilothouse.controlplane.tracing import build_tracer

    return build_tracer(configuration)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of which both the generic and the kube server's configuration are made."""

    options: CompletedOptions
    registries: Registries
    authentication: Authentication
    authorization: Authorization
    service_accounts: ServiceAccountConfig
    address: PublicAddress
    front_proxy: FrontProxy
    place: ServingPlace

    @property
    def services(self) -> ServiceResolver:
        return build_service_resolver(self.options, self.registries, self.address)


def _generic(parts: _Parts) -> GenericConfig:
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
        services=parts.services,
        peers=parts.place.peers,
    )


def _kube(parts: _Parts, generic: GenericConfig) -> KubeConfig:
    options = parts.options
    return KubeConfig(
        generic=generic,
        service_network=options.misc.service_network,
        endpoints=options.misc.endpoints,
        allow_privileged=options.misc.allow_privileged,
        serves_log_files=options.misc.enable_logs_handler,
        kubelet=replace(options.kubelet.config, simulated=simulated_kubelet(Path(options.pilothouse.data_dir))),
        address=parts.address,
        trust=_trust(options, parts.front_proxy),
        policy=parts.authorization.policy,
        node_graph=parts.authorization.node_graph,
        service_accounts=parts.service_accounts,
        external_hostname=options.generic.external_hostname,
        registries=parts.registries,
        admission=_admission(options),
        leads=parts.place.leads,
    )


def _admission(options: CompletedOptions) -> AdmissionConfig:
    config = AdmissionConfig(
        not_ready_toleration_seconds=options.admission.not_ready_toleration_seconds,
        unreachable_toleration_seconds=options.admission.unreachable_toleration_seconds,
    )
    return _configured(config, options) if options.admission.config_file else config


def _configured(config: AdmissionConfig, options: CompletedOptions) -> AdmissionConfig:
    # To read YAML and kubeconfigs is much to import for the many servers that are not told to.
    from pilothouse.controlplane.admission_configuration import admission_configurations
    from pilothouse.controlplane.static_manifests import static_admission
    from pilothouse.controlplane.webhook_credentials import webhook_credentials

    configurations = admission_configurations(options.admission.config_file)
    return replace(
        config,
        configurations=configurations,
        webhook_credentials=webhook_credentials(configurations),
        static=static_admission(configurations, options.admission.enabled, options.features.gates),
    )


def _endpoint_ip(options: CompletedOptions) -> str:
    """Return the address of the endpoint: as upstream, the host's own where the server listens on loopback only."""
    advertised = options.generic.advertise_address
    return host_address() if ip_address(advertised).is_loopback else advertised


def _trust(options: CompletedOptions, proxy: FrontProxy) -> ClusterAuthenticationInfo:
    retired = CertificatePaths.under(Path(options.pilothouse.data_dir)).retired
    return ClusterAuthenticationInfo(client_cas(options), proxy.cas, proxy.allowed_names, proxy.headers, retired)


def _flow_control(parts: _Parts, generic: GenericConfig) -> FlowControl | None:
    """As upstream, nobody waits longer for a turn than a quarter of what a request may take."""
    if generic.flow_control is None:
        return None
    return FlowControl(generic.flow_control, parts.registries.stats, generic.run_options.request_timeout / 4)


def _chain(parts: _Parts, generic: GenericConfig) -> ChainConfig:
    send_retry_after = generic.run_options.shutdown_send_retry_after
    return ChainConfig(
        authenticator=generic.authenticator,
        authorizer=generic.authorizer,
        anonymous=parts.authentication.anonymous.enabled,
        anonymous_paths=frozenset(parts.authentication.anonymous.paths),
        run_options=generic.run_options,
        features=generic.features,
        front_proxy=tuple({STANDARD, parts.front_proxy.headers}),
        flow_control=_flow_control(parts, generic),
        is_terminating=lambda: send_retry_after and generic.lifecycle.not_accepting_new_request.signaled,
        recent=RecentRequests(kept) if (kept := parts.options.pilothouse.kept_requests) else None,
    )
