"""From a declared resource to what the installer serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.endpoints.options import metadata_fields_only, supported_fields
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.interface import Store
from pilothouse.machinery.selectors import fields

_NO_OBJECT = {"kind": "", "apiVersion": "", "metadata": {}}


@dataclass(frozen=True)
class Registries:
    """Opens the registry store of each resource, and remembers them so that they can be started and stopped."""

    store: Store
    root: str = "/registry"
    opened: list[RegistryStore] = field(default_factory=list)

    def open(self, resource: Resource) -> RegistryStore:
        registry = RegistryStore(resource, self.store, root=self.root)
        self.opened.append(registry)
        return registry


def served(registry: RegistryStore, storage: object | None = None, *, subresource: str = "") -> ServedResource:
    """A resource in its storage version; `storage` where it is not simply the registry store."""
    resource = registry.resource
    return ServedResource(
        names=resource.names,
        namespaced=resource.namespaced,
        storage=storage or registry,
        kind=resource.kind,
        decoder=TypedDecoder(resource.kind),
        subresource=subresource,
        storage_version=resource.version,
        default=resource.strategy.default,
        convert_field=_field_conversion(resource),
        columns=resource.columns,
    )


def _field_conversion(resource: Resource) -> Callable[[fields.Requirement], fields.Requirement | None]:
    if resource.fields is None:
        return metadata_fields_only
    # The labels do not depend on the object, only on the kind.
    return supported_fields({*resource.fields(dict(_NO_OBJECT)), *resource.extra_field_labels})
