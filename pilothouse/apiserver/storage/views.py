"""A store that is another one for each resource, because the values of some are kept in another form."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pilothouse.apiserver.storage.interface import Store
from pilothouse.machinery.names import GroupResource


class ResourceViews(ABC):
    @abstractmethod
    def of(self, resource: GroupResource) -> Store:
        """The store as the registry of one resource uses it."""

    @abstractmethod
    def provider_problems(self) -> list[str] | None:
        """Return the problems of the key providers that it needs for that, by name; None where it needs none."""


def store_of(store: Store, resource: GroupResource) -> Store:
    return store.of(resource) if isinstance(store, ResourceViews) else store
