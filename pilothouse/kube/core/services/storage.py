"""The storages of services, with allocators, hooks and repair."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.view import StatusStore
from pilothouse.apiserver.server.hooks import PostStartHook
from pilothouse.kube.core.endpoints import ENDPOINTS
from pilothouse.kube.core.nodes.resource import NODES
from pilothouse.kube.core.pods.connect.kubelet import KubeletConfig, Kubelets
from pilothouse.kube.core.pods.resource import PODS
from pilothouse.kube.core.services.allocation.hooks import AllocationHooks, ReleaseHooks
from pilothouse.kube.core.services.allocation.ip_families import ClusterFamilies
from pilothouse.kube.core.services.ipallocator import ServiceIPAllocator
from pilothouse.kube.core.services.locations import ServiceLocations, ServiceProxy
from pilothouse.kube.core.services.network import ServiceNetwork
from pilothouse.kube.core.services.portallocator import PortAllocator
from pilothouse.kube.core.services.repair import ClusterIPRepair, NodePortRepair, ServiceRepair
from pilothouse.kube.core.services.resource import SERVICES, ServiceStatusStrategy
from pilothouse.kube.networking.ip_addresses import IP_ADDRESSES
from pilothouse.kube.networking.service_cidrs import SERVICE_CIDRS, DefaultServiceCIDR
from pilothouse.kube.registries import Registries
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ServiceStorage:
    registry: RegistryStore
    status: StatusStore
    proxy: ServiceProxy
    endpoints: RegistryStore
    post_start_hooks: dict[str, PostStartHook]
    ranges_known: Callable[[], Awaitable[object]]
    """Returns when the default ServiceCIDR exists and addresses can be allocated."""

    @classmethod
    def open(
        cls, registries: Registries, network: ServiceNetwork, kubelet: KubeletConfig | None = None
    ) -> ServiceStorage:
        services, endpoints = registries.open(SERVICES), registries.open(ENDPOINTS)
        cidrs, addresses = registries.open(SERVICE_CIDRS), registries.open(IP_ADDRESSES)
        families = ClusterFamilies.of(network.cluster_ip_ranges)
        ips = ServiceIPAllocator(cidrs, addresses)
        ports = PortAllocator(registries.store, network.node_ports, root=registries.root)
        services.hooks = AllocationHooks(families, ips, ports, endpoints)
        releasing = services.with_hooks(ReleaseHooks(families, ips, ports, endpoints))
        default_cidr = DefaultServiceCIDR(cidrs, network.cluster_ip_ranges)
        repair = ServiceRepair(
            ClusterIPRepair(services, cidrs, addresses),
            NodePortRepair(services, ports),
            ranges_known=default_cidr.known.wait,
        )
        hooks: dict[str, PostStartHook] = {
            "start-kubernetes-service-cidr-controller": default_cidr.start,
            "start-service-ip-repair-controllers": repair.start,
        }
        kubelets = Kubelets(registries.open(NODES), kubelet or KubeletConfig())
        return cls(
            services,
            status=StatusStore(releasing, ServiceStatusStrategy()),
            proxy=ServiceProxy(ServiceLocations(services, endpoints, registries.open(PODS)), kubelets),
            endpoints=endpoints,
            post_start_hooks=hooks,
            ranges_known=default_cidr.known.wait,
        )
