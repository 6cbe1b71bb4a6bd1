"""Registries of the declared resources, and the form in which the installer serves them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from typing import Protocol

from pilothouse.apiserver.endpoints.deprecation import Deprecation
from pilothouse.apiserver.endpoints.groups import APIGroup, ServedResource, no_default
from pilothouse.apiserver.endpoints.options import metadata_fields_only, supported_fields
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.flowcontrol.estimate import ResourceStats
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.apiserver.server.features import FeatureGates
from pilothouse.apiserver.server.resource_config import ResourceConfig
from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Store
from pilothouse.kube.events.ttl import DEFAULT_TTL
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource, GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import types
from pilothouse.machinery.selectors import fields


@dataclass(frozen=True)
class Registries:
    """Opens the registry store of each resource, and remembers them so that they can be started and stopped."""

    store: Store
    root: str = DEFAULT_ROOT
    event_ttl: int = DEFAULT_TTL
    """Seconds that events are kept."""
    enabled: ResourceConfig = field(default_factory=ResourceConfig)
    """Which versions are served: what is in none of them is not opened."""
    features: FeatureGates = field(default_factory=FeatureGates)
    """Which kinds are served may depend on a gate."""
    opened: list[RegistryStore] = field(default_factory=list)
    _by_resource: dict[GroupResource, RegistryStore] = field(default_factory=dict)
    _by_identity: dict[int, RegistryStore] = field(default_factory=dict)  # of the resource

    def open(self, resource: Resource) -> RegistryStore:
        """The same store each time, so that all who work on a resource share one watch cache."""
        known = self._by_identity.get(id(resource))
        if known is not None:
            return known
        registry = RegistryStore(resource, self.store, root=self.root, empty=TypedDecoder(resource.kind).empty_content)
        self.opened.append(registry)
        self._by_identity[id(resource)] = registry
        return registry

    def any_enabled(self, *versions: GroupVersion) -> bool:
        """Whether anything of one of the versions is served, so that kinds that no other version has must be open."""
        return any(map(self.enabled.any_resource_enabled, versions))

    async def start(self) -> None:
        """Begins to fill the watch caches of all that are open."""
        for registry in self.opened:
            await registry.start()

    async def wait_ready(self) -> None:
        """Return when the watch caches are filled, or known to hold objects that cannot be read: clients are told."""
        for registry in self.opened:
            with suppress(Undecodable):
                await registry.wait_ready()

    async def stop(self) -> None:
        for registry in self.opened:
            await registry.stop()

    def stats(self, resource: GroupResource) -> ResourceStats | None:
        """Return how many objects and watchers the resource has; None for one that is not open here."""
        registry = self._by_resource.get(resource)
        if registry is None:
            registry = next((each for each in self.opened if each.resource.group_resource == resource), None)
            if registry is None:
                return None
            self._by_resource[resource] = registry
        return ResourceStats(registry.known_count, registry.watcher_count)


class RESTStorageProvider(Protocol):
    """A group as the server installs it: its versions with their resources."""

    def open(self, registries: Registries) -> APIGroup: ...


@dataclass(frozen=True, slots=True)
class VersionConversion:
    """A served version that is not the stored one: how its objects become stored ones, and back.

    `default` fills in this version's defaults before the conversion.
    """

    kind: GroupVersionKind
    to_stored: Callable[[Json], Json]
    from_stored: Callable[[Json], Json]
    default: Callable[[Json], None]


def with_status(registry: RegistryStore, status: Strategy) -> list[ServedResource]:
    """The resource, and its status subresource by these rules."""
    return [served(registry), served(registry, StatusStore(registry, status), subresource="status")]


def fitted(kind: GroupVersionKind, obj: Json) -> Json:
    """Return a converted object as its new kind has it: which empty fields are written is up to the kind."""
    found = types.of(kind)
    assert found is not None, f"{kind} is no built-in kind"
    return found.fit(obj)


def served(
    registry: RegistryStore,
    storage: object | None = None,
    *,
    subresource: str = "",
    kind: GroupVersionKind | None = None,
    conversion: VersionConversion | None = None,
    deprecation: Deprecation | None = None,
) -> ServedResource:
    """A resource in its stored version, or through a conversion in another.

    `storage` stands for what is not simply the registry store; `kind` is the kind of a subresource's own objects.
    """
    resource = registry.resource
    shown = kind or (conversion.kind if conversion else resource.kind)
    return ServedResource(
        names=resource.names,
        namespaced=resource.namespaced,
        storage=storage or registry,
        kind=shown,
        decoder=TypedDecoder(shown),
        subresource=subresource,
        storage_version=resource.kind.group_version,
        storage_path=registry.keys.prefix,
        default=_default(resource, kind, conversion),
        to_stored=conversion.to_stored if conversion else None,
        from_stored=conversion.from_stored if conversion else None,
        convert_field=field_conversion(resource),
        columns=resource.columns_of(subresource),
        row_order=resource.row_order,
        reset_fields=_reset_fields(registry, storage, subresource),
        field_annotations=resource.field_annotations,
        returns_deleted_object=resource.returns_deleted_object,
        is_confidential=resource.is_confidential,
        warning=deprecation.warning(shown) if deprecation else "",
        removed_release=deprecation.removed if deprecation else "",
    )


def _reset_fields(registry: RegistryStore, storage: object | None, subresource: str) -> tuple[str, ...]:
    """A subresource that does not follow a strategy resets nothing."""
    own: tuple[str, ...] = () if subresource else registry.reset_fields
    return getattr(storage, "reset_fields", own)


def _default(
    resource: Resource, kind: GroupVersionKind | None, conversion: VersionConversion | None
) -> Callable[[Json], None]:
    if kind is not None:
        return no_default
    return conversion.default if conversion else resource.strategy.default


def field_conversion(resource: Resource) -> fields.Transform:
    """Refuse all field labels in selectors but those of `fields`, which depend on the kind and not on the object."""
    if resource.fields is None:
        return metadata_fields_only
    nothing: Json = {"kind": "", "apiVersion": "", "metadata": {}}
    return supported_fields({*resource.fields(nothing), *resource.extra_field_labels}, resource.unsupported_label)
