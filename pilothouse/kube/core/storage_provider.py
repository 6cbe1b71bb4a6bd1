"""The storages of the legacy group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.view import StatusStore, UpdateOnly
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.kube.config import ServiceAccountConfig
from pilothouse.kube.core import replicationcontrollers
from pilothouse.kube.core.componentstatuses import component_status_storages
from pilothouse.kube.core.configmaps import CONFIG_MAPS
from pilothouse.kube.core.endpoints import ENDPOINTS_DEPRECATION
from pilothouse.kube.core.limitranges import LIMIT_RANGES
from pilothouse.kube.core.namespaces import (
    NAMESPACES,
    NamespaceFinalizeStrategy,
    NamespaceStatusStrategy,
    NamespaceStorage,
)
from pilothouse.kube.core.nodes.resource import node_storages
from pilothouse.kube.core.persistentvolumeclaims import persistent_volume_claim_storages
from pilothouse.kube.core.persistentvolumes.resource import persistent_volume_storages
from pilothouse.kube.core.pods.storage import PodConnections, node_proxy, pod_storages
from pilothouse.kube.core.podtemplates import POD_TEMPLATES
from pilothouse.kube.core.resourcequotas import RESOURCE_QUOTAS, ResourceQuotaStatusStrategy
from pilothouse.kube.core.secrets import SECRETS
from pilothouse.kube.core.serviceaccount_tokens import service_account_storages
from pilothouse.kube.core.services.locations import PROXY_OPTIONS
from pilothouse.kube.core.services.network import ServiceNetwork
from pilothouse.kube.core.services.storage import ServiceStorage
from pilothouse.kube.events.events import core_event_storages
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import served, served_scale, with_status
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json


@dataclass(frozen=True)
class LegacyRESTStorage:
    """The API group, and the storages that other parts of the server share."""

    group: APIGroup
    namespaces: NamespaceStorage
    services: ServiceStorage

    async def namespace_phase(self, name: str) -> str | None:
        namespace = await self._known_namespace(name)
        return None if namespace is None else namespace.fields["status.phase"]

    async def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        namespace = await self._known_namespace(name)
        return None if namespace is None else namespace.labels

    async def namespace(self, name: str) -> Json | None:
        namespace = await self._known_namespace(name)
        return None if namespace is None else namespace.parse()

    async def _known_namespace(self, name: str) -> StoredObject | None:
        return await self.namespaces.registry.known_or_newest("", name)


@dataclass(frozen=True, slots=True)
class LegacyRESTStorageProvider:
    network: ServiceNetwork
    connections: PodConnections
    service_accounts: ServiceAccountConfig

    def open(self, registries: Registries) -> LegacyRESTStorage:
        namespaces = NamespaceStorage(registries.open(NAMESPACES))
        services = ServiceStorage.open(registries, self.network, self.connections.kubelet)
        resources = [
            served(registries.open(CONFIG_MAPS)),
            served(registries.open(SECRETS)),
            *_namespaces(namespaces),
            *pod_storages(registries, self.connections),
            served(registries.open(POD_TEMPLATES)),
            *[
                served(services.registry),
                served(services.registry, services.status, subresource="status"),
                served(services.registry, services.proxy, subresource="proxy", kind=PROXY_OPTIONS),
                served(services.endpoints, deprecation=ENDPOINTS_DEPRECATION),
            ],
            *_cluster_storages(registries, self.service_accounts),
            node_proxy(registries, self.connections),
            *_replication_controllers(registries.open(replicationcontrollers.REPLICATION_CONTROLLERS)),
        ]
        group = APIGroup("", [APIVersion(GroupVersion("", "v1"), resources)], services.post_start_hooks)
        return LegacyRESTStorage(group, namespaces, services)


def _namespaces(storage: NamespaceStorage) -> list[ServedResource]:
    registry: RegistryStore = storage.registry
    return [
        replace(
            served(registry, storage), returns_deleted_object=False
        ),  # delete returns the object, but upstream's OpenAPI omits this
        served(registry, StatusStore(registry, NamespaceStatusStrategy()), subresource="status"),
        served(registry, UpdateOnly(registry, NamespaceFinalizeStrategy()), subresource="finalize"),
    ]


def _replication_controllers(registry: RegistryStore) -> list[ServedResource]:
    return [
        *with_status(registry, replicationcontrollers.ReplicationControllerStatusStrategy()),
        served_scale(registry, replicationcontrollers.REPLICATION_CONTROLLER_SCALING),
    ]


def _cluster_storages(registries: Registries, tokens: ServiceAccountConfig) -> list[ServedResource]:
    """Return the resources of cluster and namespace administration."""
    quotas = registries.open(RESOURCE_QUOTAS)
    return [
        *component_status_storages(registries),
        *core_event_storages(registries),
        served(registries.open(LIMIT_RANGES)),
        *node_storages(registries),
        *persistent_volume_storages(registries),
        *persistent_volume_claim_storages(registries),
        served(quotas),
        served(quotas, StatusStore(quotas, ResourceQuotaStatusStrategy()), subresource="status"),
        *service_account_storages(registries, tokens),
    ]
