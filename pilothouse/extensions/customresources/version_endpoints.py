"""Endpoints of a definition's versions: stores, registries, decoders, and selectable fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from pilothouse.apiserver.endpoints.groups import APIVersion, ServedResource, no_default
from pilothouse.apiserver.endpoints.negotiation import SCHEMALESS_PATCHES
from pilothouse.apiserver.endpoints.options import supported_fields
from pilothouse.apiserver.endpoints.serializers.registry import BUILT_IN, UNSTRUCTURED, Serializers
from pilothouse.apiserver.endpoints.unstructured import UnstructuredDecoder
from pilothouse.apiserver.registry.resource import Resource, cluster_metadata_fields, metadata_fields
from pilothouse.apiserver.registry.scale import SCALE
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.view import StatusStore
from pilothouse.apiserver.storage.cbor import CborStore
from pilothouse.apiserver.storage.delegating import store_of
from pilothouse.apiserver.storage.interface import Store
from pilothouse.apiserver.storage.object import Fields
from pilothouse.extensions.conversion.converter import ConvertedValues, WebhookConverter
from pilothouse.extensions.conversion.on_demand import ConvertingRegistry
from pilothouse.extensions.conversion.store import ConvertingStore, Forms
from pilothouse.extensions.customresources.columns import columns_of, scale_columns
from pilothouse.extensions.customresources.conversion import (
    Convert,
    from_stored,
    on_read,
    relabelled,
    to_stored,
    whole_from_stored,
)
from pilothouse.extensions.customresources.model import CustomResource, Version
from pilothouse.extensions.customresources.scale import CustomResourceScaleStore, ScaleDecoder, ScalePaths
from pilothouse.extensions.customresources.strategy import CustomResourceStatusStrategy, CustomResourceStrategy
from pilothouse.extensions.schema.embedded import MalformedEmbeddedResource
from pilothouse.extensions.schema.jsonpath import JsonPath, compile_path
from pilothouse.machinery.apply.atoms import Atom
from pilothouse.machinery.gofmt import go_value
from pilothouse.machinery.names import GroupResource, GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.object_type import DecodeError


class Rules:
    """Hooks for endpoints beyond the definition; the defaults are those of custom resources."""

    serializers: Serializers = UNSTRUCTURED

    def strategy(self, resource: CustomResource, version: Version) -> CustomResourceStrategy:
        return CustomResourceStrategy(resource, version)

    def status_strategy(self, resource: CustomResource, version: Version) -> CustomResourceStrategy:
        return CustomResourceStatusStrategy(resource, version)

    def default(self, resource: CustomResource, version: Version, obj: Json) -> None:
        """Apply defaults to an object of this version."""
        resource.schemas.of(version.name).default(obj)

    def storage(self, registry: RegistryStore) -> object:
        """Return the storage that implements the verbs of the resource."""
        return registry

    def warning(self, resource: CustomResource, version: Version) -> str:
        """Return a warning for every response; version deprecation is handled elsewhere."""
        return ""


_OF_CUSTOM_RESOURCES = Rules()


def stored_values(resource: CustomResource, store: Store, *, writes_cbor: bool) -> Store:
    """Return the store for the resource's values: encrypted if configured, JSON or CBOR."""
    own = store_of(store, GroupResource(resource.group, resource.plural))
    return CborStore(own, writes_cbor=writes_cbor)


def open_registry(resource: CustomResource, store: Store, *, root: str) -> RegistryStore:
    return RegistryStore(declared(resource), store, root=root, on_read=on_read(resource))


def open_converting_registry(
    resource: CustomResource,
    version: str,
    store: Store,
    *,
    converter: WebhookConverter,
    kept: ConvertedValues,
    root: str,
) -> RegistryStore:
    """Return the registry of one version, which acts as the storage version of this registry."""
    converting = ConvertingStore(store, Forms(resource, version, converter), kept)
    return ConvertingRegistry(declared(resource.stored_in(version)), converting, converter, root=root)


def declared(resource: CustomResource) -> Resource:
    """Return the Resource declaration for a registry, in the storage version."""
    version = resource.storage_version
    return Resource(
        names=resource.names,
        strategy=CustomResourceStrategy(resource, version),
        group=resource.group,
        version=version.name,
        fields=_selectable_values(resource),
        indexed_fields=("metadata.name", *_selectable_names(resource)),
        storage_path=f"{resource.group}/{resource.plural}",
    )


def api_versions(
    resource: CustomResource,
    registry: RegistryStore,
    convert: Convert = relabelled,
    rules: Rules = _OF_CUSTOM_RESOURCES,
) -> list[APIVersion]:
    """Return the served and stored versions with their endpoints."""
    used = [version for version in resource.versions.values() if version.served or version.storage]
    return [
        APIVersion(GroupVersion(resource.group, version.name), _served(resource, version, registry, convert, rules))
        for version in used
    ]


def _served(
    resource: CustomResource, version: Version, registry: RegistryStore, convert: Convert, rules: Rules
) -> list[ServedResource]:
    own = registry.with_strategy(rules.strategy(resource, version))
    main = ServedResource(
        names=resource.names,
        namespaced=resource.namespaced,
        storage=rules.storage(own),
        kind=resource.kind(version.name),
        decoder=CustomResourceDecoder(resource, version.name),
        storage_version=resource.kind(resource.storage_version.name).group_version,
        storage_path=registry.keys.prefix,
        default=lambda obj: rules.default(resource, version, obj),
        to_stored=to_stored(resource, version, convert),
        from_stored=from_stored(resource, version, convert),
        whole_from_stored=whole_from_stored(resource, version, convert),
        convert_field=supported_fields(_selectable_labels(resource, version)),
        columns=columns_of(version),
        columns_of_version=True,
        serializers=rules.serializers,
        patch_types=SCHEMALESS_PATCHES,
        typed_items=True,
        warning=rules.warning(resource, version),
        reset_fields=("status",) if version.has_status else (),
    )
    served = [main]
    if version.has_status:
        strategy = rules.status_strategy(resource, version)
        storage = StatusStore(own, strategy)
        served.append(replace(main, storage=storage, subresource="status", reset_fields=("metadata", "spec")))
    if version.scale is not None:
        served.append(_scale(main, own, version))
    return served


def _scale(main: ServedResource, registry: RegistryStore, version: Version) -> ServedResource:
    assert version.scale is not None
    paths = ScalePaths.of(version.scale)
    return replace(
        main,
        storage=CustomResourceScaleStore(registry, paths),
        subresource="scale",
        kind=SCALE,
        decoder=ScaleDecoder(),
        default=no_default,
        to_stored=None,
        from_stored=None,
        columns=scale_columns(),
        serializers=BUILT_IN,
        typed_items=False,
        reset_fields=(),
    )


def _selectable_labels(resource: CustomResource, version: Version) -> set[str]:
    """Return the fields that selectors may name in this version."""
    scope = {"metadata.name", "metadata.namespace"} if resource.namespaced else {"metadata.name"}
    return scope | {path.removeprefix(".") for path in version.selectable_fields}


def _selectable_values(resource: CustomResource) -> Callable[[Json], Fields]:
    """Return a function from a stored object to its selectable field values of all versions."""
    own = metadata_fields if resource.namespaced else cluster_metadata_fields
    selectable = {name: compile_path(f".{name}") for name in _selectable_names(resource)}

    def fields(obj: Json) -> Fields:
        return own(obj) | {name: _text(path, obj) for name, path in selectable.items()}

    return fields


def _selectable_names(resource: CustomResource) -> list[str]:
    """Return the selectable fields of all versions."""
    paths = {path for version in resource.versions.values() for path in version.selectable_fields}
    return [path.removeprefix(".") for path in sorted(paths)]


def _text(path: JsonPath, obj: Json) -> str:
    values = path.find(obj)
    return go_value(values[0]) if values and values[0] is not None else ""


class CustomResourceDecoder(UnstructuredDecoder):
    """Decodes objects for one version. As upstream, objects of another version are decoded by that version's schema."""

    def __init__(self, resource: CustomResource, version: str) -> None:
        super().__init__(resource.kind(version))
        self.resource = resource

    @cached_property
    def atom(self) -> Atom:
        return self.resource.schemas.of(self.kind.version).atom

    @property
    def fits_atom(self) -> bool:
        """Always False: validation, which follows admission, reports wrong types."""
        return False

    def knows(self, kind: GroupVersionKind) -> bool:
        return kind.group == self.kind.group and kind.version in self.resource.versions

    def fit(self, obj: Json, named: GroupVersionKind) -> list[str]:
        if named.group_kind != self.kind.group_kind:
            return []  # validation rejects it with another message
        try:
            return self.resource.schemas.of(named.version).prune(obj)
        except MalformedEmbeddedResource as error:
            raise DecodeError(str(error)) from None
