"""The storage of APIServices."""

from __future__ import annotations

from pilothouse.aggregator.apiservice.strategy import API_SERVICES, GROUP_VERSION, APIServiceStatusStrategy
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.endpoints.typed_resource import served_with_status
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.interface import Store
from pilothouse.machinery.codec.scheme import AGGREGATOR

_DECODER = TypedDecoder(API_SERVICES.kind, AGGREGATOR)


class APIServiceStore(RegistryStore):
    def __init__(self, store: Store, *, root: str) -> None:
        super().__init__(API_SERVICES, store, root=root, empty=_DECODER.empty_content)

    def api_group(self) -> APIGroup:
        """The resource and its status."""
        resources = served_with_status(self, APIServiceStatusStrategy(), _DECODER)
        return APIGroup(GROUP_VERSION.group, [APIVersion(GROUP_VERSION, resources)])
