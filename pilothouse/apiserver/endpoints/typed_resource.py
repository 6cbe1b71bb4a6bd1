"""A resource of a built-in type and its status, for servers outside of the kube groups."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.endpoints.options import metadata_fields_only
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.registry.view import StatusStore


def served_with_status(registry: RegistryStore, status: Strategy, decoder: TypedDecoder) -> list[ServedResource]:
    return [_served(registry, registry, decoder), _served(registry, StatusStore(registry, status), decoder, "status")]


def _served(
    registry: RegistryStore, storage: RegistryStore | StatusStore, decoder: TypedDecoder, subresource: str = ""
) -> ServedResource:
    resource = registry.resource
    return ServedResource(
        names=resource.names,
        namespaced=resource.namespaced,
        storage=storage,
        kind=resource.kind,
        decoder=decoder,
        subresource=subresource,
        storage_version=resource.kind.group_version,
        default=resource.strategy.default,
        convert_field=metadata_fields_only,
        columns=resource.columns_of(subresource),
        repeats_columns=resource.repeats_columns,
        reset_fields=storage.reset_fields,
    )
