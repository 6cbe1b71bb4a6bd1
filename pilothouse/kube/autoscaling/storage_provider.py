"""The storages of the group autoscaling: one kind, stored once and served in two versions."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.autoscaling.horizontalpodautoscalers import (
    HORIZONTAL_POD_AUTOSCALERS,
    HorizontalPodAutoscalerStatusStrategy,
)
from pilothouse.kube.autoscaling.v1 import V1_CONVERSION
from pilothouse.kube.served import Registries, VersionConversion, served
from pilothouse.machinery.names import GroupVersion


class AutoscalingStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        registry = registries.open(HORIZONTAL_POD_AUTOSCALERS)
        versions = [
            APIVersion(GroupVersion("autoscaling", "v2"), _autoscalers(registry)),
            APIVersion(GroupVersion("autoscaling", "v1"), _autoscalers(registry, V1_CONVERSION)),
        ]
        return APIGroup("autoscaling", versions)


def _autoscalers(registry: RegistryStore, conversion: VersionConversion | None = None) -> list[ServedResource]:
    status = StatusStore(registry, HorizontalPodAutoscalerStatusStrategy())
    return [
        served(registry, conversion=conversion),
        served(registry, status, subresource="status", conversion=conversion),
    ]
