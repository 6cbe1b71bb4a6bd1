"""The objects that policies take as parameters: built-in ones from their stores, others through the whole server."""

from __future__ import annotations

import time
from collections.abc import Callable

from pilothouse.apiserver.admission.policy.params import ParamResource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest_mapper import NoMatch, RESTMapper
from pilothouse.kube.admission.object_lookup import ObjectLookup
from pilothouse.kube.registries import Registries
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json, labels_of
from pilothouse.machinery.selectors.labels import Selector

_RETRY = 1.0
"""For how many seconds a kind that nobody knows stays unknown."""


class PolicyParams:
    def __init__(
        self, registries: Registries, client: Client | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._registries = registries
        self._client = client
        self._mapper = None if client is None else RESTMapper(DiscoveryClient(client))
        self._unknown: BoundedCache[GroupVersionKind, bool] = BoundedCache(
            entries=256, total_bytes=256 << 10, now=clock
        )

    async def resource(self, kind: GroupVersionKind) -> ParamResource | None:
        for registry in self._registries.opened:
            if registry.resource.kind == kind:
                return ParamResource(_resource_of(registry), registry.resource.namespaced)
        if self._mapper is None or self._unknown.get(kind):
            return None
        try:
            mapping = await self._mapper.mapping(kind.group_kind, kind.version)
        except NoMatch:
            self._unknown.put(kind, True, size=256 + len(str(kind)), ttl=_RETRY)
            return None
        return ParamResource(mapping.resource, mapping.namespaced)

    async def get(self, resource: ParamResource, namespace: str, name: str) -> Json | None:
        registry = self._registry(resource)
        if registry is not None:
            return await ObjectLookup(registry).get(name, namespace)
        assert self._client is not None
        try:
            return await self._client.for_resource(resource.resource, namespace=namespace).get(name)
        except NotFound:
            return None

    async def list(self, resource: ParamResource, namespace: str, selector: Selector) -> list[Json]:
        registry = self._registry(resource)
        if registry is not None:
            found = await ObjectLookup(registry).list(namespace)
            return [obj for obj in found if selector.matches(labels_of(obj))]
        assert self._client is not None
        collection = self._client.for_resource(resource.resource, namespace=namespace)
        pages = collection.pages(ListOptions(label_selector=str(selector)))
        return [obj async for page in pages for obj in page["items"]]

    def _registry(self, resource: ParamResource) -> RegistryStore | None:
        return next((each for each in self._registries.opened if _resource_of(each) == resource.resource), None)


def _resource_of(registry: RegistryStore) -> GroupVersionResource:
    return registry.resource.kind.group_version.resource(registry.resource.names.plural)
