"""The storage of APIServices."""

from __future__ import annotations

from pilothouse.aggregator.apiservice.strategy import API_SERVICES, GROUP_VERSION, APIServiceStatusStrategy
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.apiserver.endpoints.options import metadata_fields_only
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.apiserver.storage.interface import Store
from pilothouse.machinery.codec.scheme import AGGREGATOR
from pilothouse.machinery.objects import Json

_DECODER = TypedDecoder(API_SERVICES.kind, AGGREGATOR)


class APIServiceStore(RegistryStore):
    def __init__(self, store: Store, *, root: str) -> None:
        super().__init__(API_SERVICES, store, root=root, empty=_empty)

    def api_group(self) -> APIGroup:
        """The resource and its status."""
        status = StatusStore(self, APIServiceStatusStrategy())
        return APIGroup(GROUP_VERSION.group, [APIVersion(GROUP_VERSION, [_served(self), _served(status, "status")])])


def _empty() -> Json:
    return {key: value for key, value in _DECODER.empty.items() if key != "metadata"}


def _served(storage: APIServiceStore | StatusStore, subresource: str = "") -> ServedResource:
    return ServedResource(
        names=API_SERVICES.names,
        namespaced=False,
        storage=storage,
        kind=API_SERVICES.kind,
        decoder=_DECODER,
        subresource=subresource,
        storage_version=API_SERVICES.version,
        default=API_SERVICES.strategy.default,
        convert_field=metadata_fields_only,
        columns=API_SERVICES.columns,
        reset_fields=storage.reset_fields,
    )
