"""Per-resource views of a store, for resources with another storage format."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pilothouse.apiserver.storage.interface import Store
from pilothouse.machinery.names import GroupResource


class ResourceViews(ABC):
    @abstractmethod
    def of(self, resource: GroupResource) -> Store:
        """Return the store for the registry of a resource."""

    @abstractmethod
    def provider_problems(self) -> list[str] | None:
        """Return the problems of the required key providers by name; None without providers."""


def store_of(store: Store, resource: GroupResource) -> Store:
    return store.of(resource) if isinstance(store, ResourceViews) else store
