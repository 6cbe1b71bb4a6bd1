"""The configuration of the three servers, built from completed options."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import field, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeAlias

from pilothouse.apiserver.filters.chain import ChainConfig
from pilothouse.apiserver.flowcontrol.metrics import FlowControlCollector
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.resource_config import parse_runtime_config
from pilothouse.apiserver.serving.tls_options import KeyPair
from pilothouse.apiserver.storage.interface import Store
from pilothouse.apiserver.storage.snapshots import Snapshots
from pilothouse.controlplane.authentication.setup import service_account_config, set_up_authentication
from pilothouse.controlplane.authorization.setup import set_up_authorization
from pilothouse.controlplane.bench import new_bench
from pilothouse.controlplane.generic_config import ConfigParts, filter_config, generic_config
from pilothouse.controlplane.kube_config import kube_config
from pilothouse.controlplane.options.completion import CompletedOptions, host_address
from pilothouse.controlplane.serving import front_proxy
from pilothouse.controlplane.serving_place import ALONE, ServingPlace
from pilothouse.kube.bootstrap import endpoint_reconciler
from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.registries import Registries
from pilothouse.kube.server import KubeConfig
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
    """Client certificate for aggregated API servers."""
    snapshots: Snapshots
    """Saves and restores the contents of the store."""
    place: ServingPlace = ALONE
    bench: Bench | None = None
    """Fault injection, with --testing."""
    background: Mapping[str, Background] = field(default_factory=dict)
    """Background tasks of the server, by name."""


def new_config(
    options: CompletedOptions, store: Store, place: ServingPlace = ALONE, scope: ServerScope | None = None
) -> Config:
    """Build the configuration. `scope` belongs to --testing.

    Raise ValueError or OSError for an invalid or unreadable file that an option names.
    """
    features = options.gates
    features.publish()
    registries = Registries(
        store,
        root=options.etcd.prefix,
        event_ttl=int(options.misc.event_ttl),
        enabled=parse_runtime_config(options.api_enablement.runtime_config),
        features=features,
    )
    advertised = options.generic.advertise_address
    address = PublicAddress(
        host_address() if ip_address(advertised).is_loopback else advertised, options.secure_serving.secure_port
    )
    proxy = front_proxy(options)
    authorization = set_up_authorization(options.authorization)
    accounts = service_account_config(options)
    authentication = set_up_authentication(options, accounts, registries, proxy)
    parts = ConfigParts(options, registries, authentication, authorization, accounts, address, proxy, place)
    generic = generic_config(parts)
    audit: Audit | None = None
    if options.audit.policy_file:
        from pilothouse.controlplane.audit import build_audit  # imports an HTTP client

        audit = build_audit(options.audit)
    lifetimes = {"/events/": registries.event_ttl, "/masterleases/": endpoint_reconciler.TTL}
    snapshots = Snapshots(registries.store, root=registries.root, lifetimes=lifetimes)
    bench = new_bench(scope, generic, snapshots)
    tracer: RecordingTracer | None = None
    if (traces := options.traces.configuration) is not None:
        from pilothouse.controlplane.tracing import build_tracer

        tracer = build_tracer(traces)
    chain = replace(
        filter_config(parts, generic), auditing=audit.auditing if audit else None, bench=bench, tracer=tracer
    )
    kube = kube_config(parts, generic)
    background = {**authentication.background, **authorization.background, **kube.admission.static.background}
    if audit:
        background["audit"] = audit.run
    if tracer:
        background["traces"] = tracer.run
    if generic.flow_control is not None:
        background["metrics of flow control"] = FlowControlCollector(generic.flow_control).run
    return Config(options, generic, kube, chain, proxy.client, snapshots, place, bench, background)
