"""The bootstrap controllers, under upstream's names."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TypeAlias

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.hooks import HookContext, PostStartHook, PreShutdownHook, nothing_to_start
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.kube.bootstrap import endpoint_reconciler
from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.bootstrap.cluster_authentication_trust import ClusterAuthenticationInfo, ClusterAuthenticationTrust
from pilothouse.kube.bootstrap.identity_lease import IdentityLease, IdentityLeaseGarbageCollector, hostname
from pilothouse.kube.bootstrap.kubernetes_service import KubernetesService
from pilothouse.kube.bootstrap.periodic import repeat, try_once
from pilothouse.kube.config import LEASE, MASTER_COUNT, NONE, EndpointConfig
from pilothouse.kube.coordination.leases import leases_with
from pilothouse.kube.core.configmaps import CONFIG_MAPS
from pilothouse.kube.core.endpoints import ENDPOINTS
from pilothouse.kube.core.namespaces import NAMESPACES
from pilothouse.kube.core.services.storage import ServiceStorage
from pilothouse.kube.discovery.endpoint_slices import ENDPOINT_SLICES
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import tracked_access
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import Clock, is_date, system_clock

_log = logging.getLogger(__name__)

SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease", "default")

_PERIOD = 60.0

NAMESPACE, NAME = "kube-system", "kube-apiserver-legacy-service-account-token-tracking"

SINCE = "since"

_CREATE_AT_MOST_EVERY = timedelta(minutes=30)
"""Seconds. Servers that disagree about the ConfigMap must not recreate it continuously."""


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Installs the bootstrap hooks on a server. `cluster_ip` is the address of the `kubernetes` service."""

    registries: Registries
    services: ServiceStorage
    address: PublicAddress
    cluster_ip: str
    trust: ClusterAuthenticationInfo
    endpoints: EndpointConfig = EndpointConfig()
    leads: bool = True
    """Whether this process does the work. Every process installs the hooks; one worker leads."""

    def install(self, server: GenericAPIServer) -> None:
        namespaces = SystemNamespaces(self.registries.open(NAMESPACES))
        config_maps = tracked_access(self.registries.open(CONFIG_MAPS))
        trust = ClusterAuthenticationTrust(config_maps, self.trust)
        self._add(server, "start-system-namespaces-controller", namespaces.start)
        self._add(server, "start-cluster-authentication-info-controller", trust.start)
        leases = tracked_access(self.registries.open(leases_with(self.registries.features)))
        lease = IdentityLease(leases, host=hostname())
        collector = IdentityLeaseGarbageCollector(leases)
        self._add(server, "start-kube-apiserver-identity-lease-controller", lease.start)
        self._add_last(server, "stop-kube-apiserver-identity-lease-controller", lease.stop)
        self._add(server, "start-kube-apiserver-identity-lease-garbage-collector", collector.start)
        self._add(server, "start-legacy-token-tracking-controller", LegacyTokenTracking(config_maps).start)
        controller = KubernetesService(
            tracked_access(self.services.registry),
            self._reconciler(),
            cluster_ip=self.cluster_ip,
            address=self.address,
            ranges_known=self.services.ranges_known,
            ready=server.lifecycle.has_been_ready.wait,
        )
        self._add(server, "bootstrap-controller", controller.start)
        self._add_last(server, "stop-kubernetes-service-controller", controller.stop)

    def _add(self, server: GenericAPIServer, name: str, hook: PostStartHook) -> None:
        server.add_post_start_hook(name, hook if self.leads else nothing_to_start)

    def _add_last(self, server: GenericAPIServer, name: str, hook: PreShutdownHook) -> None:
        if self.leads:
            server.add_pre_shutdown_hook(name, hook)

    def _reconciler(self) -> endpoint_reconciler.EndpointReconciler:
        kind = self.endpoints.reconciler_type or LEASE
        _log.info("Using reconciler: %s", kind)
        if kind == NONE:
            return endpoint_reconciler.NoEndpointReconciler()
        endpoints = tracked_access(self.registries.open(ENDPOINTS))
        slices = tracked_access(self.registries.open(ENDPOINT_SLICES))
        written = endpoint_reconciler.WrittenEndpoints(self.address, endpoints=endpoints, slices=slices)
        if kind == MASTER_COUNT:
            return endpoint_reconciler.MasterCountEndpointReconciler(
                self.address, self.endpoints.apiserver_count, written
            )
        leases = endpoint_reconciler.EndpointLeases(self.registries.store, root=self.registries.root)
        return endpoint_reconciler.LeaseEndpointReconciler(self.address, leases, written)


class SystemNamespaces:
    def __init__(self, namespaces: RegistryStore) -> None:
        self._namespaces = tracked_access(namespaces)

    async def start(self, context: HookContext) -> None:
        await self.sync()
        context.spawn(repeat(self.sync, every=_PERIOD), name="system-namespaces-controller")

    async def sync(self) -> None:
        """Create missing namespaces. A failure is retried in the next round."""
        for name in SYSTEM_NAMESPACES:
            namespace: Json = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
            complaint = f"unable to create required kubernetes system Namespace {name}"
            await try_once(partial(self._namespaces.ensure, namespace), complaint)


class LegacyTokenTracking:
    def __init__(self, config_maps: OwnAccess, *, clock: Clock = system_clock) -> None:
        self._config_maps = config_maps
        self._clock = clock
        self._created: datetime | None = None

    async def start(self, context: HookContext) -> None:
        sync = partial(try_once, self.sync, "error while syncing ConfigMap kube-system/" + NAME)
        await sync()
        context.spawn(repeat(sync, every=_PERIOD), name="legacy-token-tracking-controller")

    async def sync(self) -> None:
        """Raises StatusError."""
        existing = await self._config_maps.get(NAME, namespace=NAMESPACE)
        if existing is None:
            if self._created is None or abs(self._clock() - self._created) >= _CREATE_AT_MOST_EVERY:
                obj: Json = {
                    "kind": "ConfigMap",
                    "apiVersion": "v1",
                    "metadata": {"name": NAME, "namespace": NAMESPACE},
                }
                self._set_since(obj)
                await self._config_maps.ensure(obj)
                self._created = self._clock()
        elif not is_date((existing.get("data") or {}).get(SINCE, "")):
            await self._config_maps.update(existing, self._set_since)

    def _set_since(self, config_map: Json) -> None:
        config_map["data"] = (config_map.get("data") or {}) | {SINCE: self._clock().date().isoformat()}


Sync: TypeAlias = Callable[[], Awaitable[None]]
