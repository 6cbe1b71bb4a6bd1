"""The storages of pods, subresources and bindings."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.resource import Names
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.view import StatusStore
from pilothouse.kube.core.nodes.resource import NODES
from pilothouse.kube.core.pods.binding import BINDING, BindingStorage, LegacyBindingStorage
from pilothouse.kube.core.pods.connect.kubelet import KubeletConfig, Kubelets
from pilothouse.kube.core.pods.connect.locations import PodLocations
from pilothouse.kube.core.pods.connect.logs import LogStorage
from pilothouse.kube.core.pods.connect.storages import (
    NODE_PROXY_OPTIONS,
    NodeProxy,
    PortForwardStorage,
    ProxyStorage,
    StreamStorage,
)
from pilothouse.kube.core.pods.disruption_budgets import StoredBudgets
from pilothouse.kube.core.pods.eviction import EVICTION, EvictionDecoder, EvictionStorage
from pilothouse.kube.core.pods.resource import PODS, convert_field
from pilothouse.kube.core.pods.strategy import (
    PodEphemeralContainersStrategy,
    PodResizeStrategy,
    PodStatusStrategy,
)
from pilothouse.kube.policy.poddisruptionbudgets import POD_DISRUPTION_BUDGETS, PodDisruptionBudgetStatusStrategy
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import served, tracked_status
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind


@dataclass(frozen=True, slots=True)
class PodConnections:
    """Authorizer and kubelet configuration for the connecting subresources."""

    authorizer: Authorizer
    kubelet: KubeletConfig


def node_proxy(registries: Registries, connections: PodConnections) -> ServedResource:
    nodes = registries.open(NODES)
    storage = NodeProxy(Kubelets(nodes, connections.kubelet))
    return served(nodes, storage, subresource="proxy", kind=NODE_PROXY_OPTIONS)


def pod_storages(registries: Registries, connections: PodConnections) -> list[ServedResource]:
    registry = registries.open(PODS)
    bindings = BindingStorage(registry)
    budgets = tracked_status(registries.open(POD_DISRUPTION_BUDGETS), PodDisruptionBudgetStatusStrategy())
    evictions = EvictionStorage(registry, StoredBudgets(budgets))
    return [
        replace(served(registry), convert_field=convert_field),
        *_views(registry),
        served(registry, bindings, subresource="binding", kind=BINDING),
        replace(served(registry, evictions, subresource="eviction", kind=EVICTION), decoder=EvictionDecoder(EVICTION)),
        *_connecters(registry, Kubelets(registries.open(NODES), connections.kubelet), connections.authorizer),
        _legacy_bindings(registry, bindings),
    ]


def _connecters(registry: RegistryStore, kubelets: Kubelets, authorizer: Authorizer) -> list[ServedResource]:
    locations = PodLocations(registry, kubelets)
    storages: dict[str, tuple[str, object]] = {
        "attach": ("PodAttachOptions", StreamStorage("attach", locations, authorizer)),
        "exec": ("PodExecOptions", StreamStorage("exec", locations, authorizer)),
        "log": ("Pod", LogStorage(locations)),
        "portforward": ("PodPortForwardOptions", PortForwardStorage(locations, authorizer)),
        "proxy": ("PodProxyOptions", ProxyStorage(locations)),
    }
    return [
        served(registry, storage, subresource=name, kind=GroupVersionKind("", "v1", kind))
        for name, (kind, storage) in storages.items()
    ]


def _views(registry: RegistryStore) -> list[ServedResource]:
    strategies = {
        "status": PodStatusStrategy(),
        "ephemeralcontainers": PodEphemeralContainersStrategy(),
        "resize": PodResizeStrategy(),
    }
    return [served(registry, StatusStore(registry, rules), subresource=name) for name, rules in strategies.items()]


def _legacy_bindings(registry: RegistryStore, bindings: BindingStorage) -> ServedResource:
    storage = LegacyBindingStorage(bindings)
    names = Names("bindings", kind="Binding")
    return replace(served(registry, storage, kind=BINDING), names=names, storage_version=None)
