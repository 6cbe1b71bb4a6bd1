"""Those storages of the legacy group that are about the cluster and its namespaces, not about workloads."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.core.componentstatuses import component_status_storages
from pilothouse.kube.core.limitranges import LIMIT_RANGES
from pilothouse.kube.core.nodes.resource import node_storages
from pilothouse.kube.core.persistentvolumeclaims.resource import persistent_volume_claim_storages
from pilothouse.kube.core.persistentvolumes.resource import persistent_volume_storages
from pilothouse.kube.core.resourcequotas import RESOURCE_QUOTAS, ResourceQuotaStatusStrategy
from pilothouse.kube.core.serviceaccount_tokens import service_account_storages
from pilothouse.kube.events.storage_provider import core_event_storages
from pilothouse.kube.served import Registries, served
from pilothouse.kube.serviceaccount.config import ServiceAccountConfig


def cluster_storages(registries: Registries, tokens: ServiceAccountConfig) -> list[ServedResource]:
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
