"""The bootstrap controllers, under upstream's names."""

from __future__ import annotations

import logging

from pilothouse.apiserver.server.hooks import PostStartHook, PreShutdownHook, nothing_to_start
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.bootstrap.cluster_authentication_trust import ClusterAuthenticationInfo, ClusterAuthenticationTrust
from pilothouse.kube.bootstrap.endpoint_config import LEASE, MASTER_COUNT, NONE, EndpointConfig
from pilothouse.kube.bootstrap.endpoint_leases import EndpointLeases
from pilothouse.kube.bootstrap.endpoint_reconciler import (
    EndpointReconciler,
    LeaseEndpointReconciler,
    MasterCountEndpointReconciler,
    NoEndpointReconciler,
)
from pilothouse.kube.bootstrap.identity_lease import IdentityLease, IdentityLeaseGarbageCollector, hostname
from pilothouse.kube.bootstrap.kubernetes_service import KubernetesService
from pilothouse.kube.bootstrap.legacy_token_tracking import LegacyTokenTracking
from pilothouse.kube.bootstrap.system_namespaces import SystemNamespaces
from pilothouse.kube.bootstrap.written_endpoints import WrittenEndpoints
from pilothouse.kube.coordination.leases import leases_with
from pilothouse.kube.core.configmaps import CONFIG_MAPS
from pilothouse.kube.core.endpoints import ENDPOINTS
from pilothouse.kube.core.namespaces import NAMESPACES
from pilothouse.kube.core.services.storage import ServiceStorage
from pilothouse.kube.discovery.endpoint_slices import ENDPOINT_SLICES
from pilothouse.kube.registries import Registries
from pilothouse.kube.tracked_access import tracked_access
from pilothouse.machinery.dataclass import dataclass

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Adds its hooks to a server. `cluster_ip` is where the `kubernetes` service is to live."""

    registries: Registries
    services: ServiceStorage
    address: PublicAddress
    cluster_ip: str
    trust: ClusterAuthenticationInfo
    endpoints: EndpointConfig = EndpointConfig()
    leads: bool = True
    """Whether it works at all: of several processes that serve as one, only one does. The hooks are everywhere."""

    def install(self, server: GenericAPIServer) -> None:
        namespaces = SystemNamespaces(self.registries.open(NAMESPACES))
        config_maps = tracked_access(self.registries.open(CONFIG_MAPS))
        trust = ClusterAuthenticationTrust(config_maps, self.trust)
        self._add(server, "start-system-namespaces-controller", namespaces.start)
        self._add(server, "start-cluster-authentication-info-controller", trust.start)
        leases = tracked_access(self.registries.open(leases_with(self.registries.features)))
        lease = IdentityLease(leases, host=hostname(), address=self.address)
        collector = IdentityLeaseGarbageCollector(leases)
        self._add(server, "start-kube-apiserver-identity-lease-controller", lease.start)
        self._add_last(server, "stop-kube-apiserver-identity-lease-controller", lease.stop)
        self._add(server, "start-kube-apiserver-identity-lease-garbage-collector", collector.start)
        self._add(server, "start-legacy-token-tracking-controller", LegacyTokenTracking(config_maps).start)
        self._install_kubernetes_service(server)

    def _install_kubernetes_service(self, server: GenericAPIServer) -> None:
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

    def _reconciler(self) -> EndpointReconciler:
        kind = self.endpoints.reconciler_type or LEASE
        _log.info("Using reconciler: %s", kind)
        if kind == NONE:
            return NoEndpointReconciler()
        endpoints = tracked_access(self.registries.open(ENDPOINTS))
        slices = tracked_access(self.registries.open(ENDPOINT_SLICES))
        written = WrittenEndpoints(self.address, endpoints=endpoints, slices=slices)
        if kind == MASTER_COUNT:
            return MasterCountEndpointReconciler(self.address, self.endpoints.apiserver_count, written)
        leases = EndpointLeases(self.registries.store, root=self.registries.root)
        return LeaseEndpointReconciler(self.address, leases, written)
