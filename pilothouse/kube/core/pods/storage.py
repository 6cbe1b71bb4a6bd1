"""The storages of pods: what stands behind the resource, its subresources and the collection of bindings."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.resource import Names
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.core.pods.binding import BINDING, BindingStorage, LegacyBindingStorage
from pilothouse.kube.core.pods.disruption_budgets import StoredBudgets
from pilothouse.kube.core.pods.eviction import EVICTION, EvictionStorage
from pilothouse.kube.core.pods.resource import PODS, convert_field
from pilothouse.kube.core.pods.strategy import (
    PodEphemeralContainersStrategy,
    PodResizeStrategy,
    PodStatusStrategy,
)
from pilothouse.kube.policy.poddisruptionbudgets import POD_DISRUPTION_BUDGETS
from pilothouse.kube.served import Registries, served


def pod_storages(registries: Registries) -> list[ServedResource]:
    registry = registries.open(PODS)
    bindings = BindingStorage(registry)
    evictions = EvictionStorage(registry, StoredBudgets(registries.open(POD_DISRUPTION_BUDGETS)))
    return [
        replace(served(registry), convert_field=convert_field),
        *_views(registry),
        served(registry, bindings, subresource="binding", kind=BINDING),
        served(registry, evictions, subresource="eviction", kind=EVICTION),
        _legacy_bindings(registry, bindings),
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
    return replace(served(registry, storage, kind=BINDING), names=names, storage_version="")
