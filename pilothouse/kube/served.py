"""Resources in the form expected by the installer of endpoints, in each version, and the server's own access to them.

--runtime-config enables alpha and beta versions, which are off by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import APIVersion, ServedResource, no_default
from pilothouse.apiserver.endpoints.install import field_manager
from pilothouse.apiserver.endpoints.options import metadata_fields_only
from pilothouse.apiserver.endpoints.routes import Deprecation
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.registry.interface import Creator
from pilothouse.apiserver.registry.own_access import KUBE_APISERVER, OwnAccess
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.scale import SCALE, SCALE_COLUMNS, ScaleStore, Scaling
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.registry.view import StatusStore
from pilothouse.kube.api_lifecycle import deprecation_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import types
from pilothouse.machinery.selectors import fields

DEFAULT_SCALING = Scaling()


def with_status(registry: RegistryStore, status: Strategy | None = None) -> list[ServedResource]:
    """Return the resource, and its status subresource if `status` or the resource declares a strategy."""
    strategy = status or registry.resource.status
    resources = [served(registry)]
    if strategy is not None:
        store = StatusStore(registry, strategy)
        resources.append(served(registry, store, subresource="status"))
    return resources


def served_scale(registry: RegistryStore, scaling: Scaling = DEFAULT_SCALING) -> ServedResource:
    scale = served(registry, ScaleStore(registry, scaling), subresource="scale", kind=SCALE)
    return replace(scale, columns=SCALE_COLUMNS)


def served_review(version: GroupVersion, kind: str, storage: Creator, *, namespaced: bool = False) -> ServedResource:
    """Return a review: a create-only resource. The response to the create carries the result; nothing is stored."""
    return ServedResource(
        names=Names(f"{kind.lower()}s", kind=kind),
        namespaced=namespaced,
        storage=storage,
        kind=version.kind(kind),
        decoder=TypedDecoder(version.kind(kind)),
    )


def served(
    registry: RegistryStore,
    storage: object | None = None,
    *,
    subresource: str = "",
    kind: GroupVersionKind | None = None,
    conversion: VersionConversion | None = None,
    deprecation: Deprecation | None = None,
) -> ServedResource:
    """Return a resource in its storage version, or in another version by a conversion.

    `storage` replaces the registry store. `kind` is the kind of a subresource with objects of its own, such as Scale.
    """
    resource = registry.resource
    served_kind = kind or (conversion.kind if conversion else resource.kind)
    deprecation = deprecation or deprecation_of(served_kind)
    return ServedResource(
        names=resource.names,
        namespaced=resource.namespaced,
        storage=storage or registry,
        kind=served_kind,
        decoder=TypedDecoder(served_kind),
        subresource=subresource,
        storage_version=resource.kind.group_version,
        storage_path=registry.keys.prefix,
        default=_default(resource, kind, conversion),
        to_stored=conversion.to_stored if conversion else None,
        from_stored=conversion.from_stored if conversion else None,
        convert_field=field_conversion(resource, served_kind),
        columns=resource.columns_of(subresource),
        row_order=resource.row_order,
        reset_fields=_reset_fields(registry, storage, subresource),
        field_annotations=resource.field_annotations,
        returns_deleted_object=resource.returns_deleted_object,
        is_confidential=resource.is_confidential,
        warning=deprecation.warning(served_kind) if deprecation else "",
        removed_release=deprecation.removed if deprecation else "",
    )


def _reset_fields(registry: RegistryStore, storage: object | None, subresource: str) -> tuple[str, ...]:
    """Return the reset fields of the storage. Subresources without a strategy reset no field."""
    own: tuple[str, ...] = () if subresource else registry.reset_fields
    return getattr(storage, "reset_fields", own)


def _default(
    resource: Resource, kind: GroupVersionKind | None, conversion: VersionConversion | None
) -> Callable[[Json], None]:
    if kind is not None:
        return no_default
    return conversion.default if conversion else resource.strategy.default


def field_conversion(resource: Resource, kind: GroupVersionKind) -> fields.Transform:
    """Return the check of field labels in selectors of the served kind: `fields` of the resource lists the supported
    labels."""
    if resource.fields is None:
        return metadata_fields_only
    nothing: Json = {"kind": "", "apiVersion": "", "metadata": {}}
    known = frozenset({*resource.fields(nothing), *resource.extra_field_labels})
    return SelectableFields(known, resource.unsupported_label, kind)


@dataclass(frozen=True, slots=True)
class SelectableFields:
    """Accepts the known field labels in selectors of a served kind. Raises ValueError for other labels."""

    known: frozenset[str]
    refusal: Callable[[GroupVersionKind, str], str]
    kind: GroupVersionKind

    def __call__(self, requirement: fields.Requirement) -> fields.Requirement:
        if requirement.field not in self.known:
            raise ValueError(self.refusal(self.kind, requirement.field))
        return requirement


def tracked_access(
    registry: RegistryStore, *, manager: str = KUBE_APISERVER, subresource: str = "", also: Iterable[str] = ()
) -> OwnAccess:
    """Return access to the stored version, or to the subresource of the registry's strategy.

    `also`: other versions with the same fields. Managers of unlisted versions lose their fields in a write.
    """
    resource = served(registry, registry, subresource=subresource)
    stored = resource.kind.group_version
    others = (GroupVersion(stored.group, version) for version in also)
    versions = [APIVersion(stored, [resource]), *(APIVersion(other, in_version(other, [resource])) for other in others)]
    return OwnAccess(registry, field_manager(resource, versions), manager)


def tracked_status(
    registry: RegistryStore, strategy: Strategy, *, manager: str = KUBE_APISERVER, also: Iterable[str] = ()
) -> OwnAccess:
    """Return access to the status of the stored version. `also` as in `tracked_access`."""
    return tracked_access(registry.with_strategy(strategy), manager=manager, subresource="status", also=also)


@dataclass(frozen=True, slots=True)
class VersionConversion:
    """Conversion between a served version and the storage version. `default` runs before `to_stored`."""

    kind: GroupVersionKind
    to_stored: Callable[[Json], Json]
    from_stored: Callable[[Json], Json]
    default: Callable[[Json], None]


def in_version(
    version: GroupVersion,
    stored: Iterable[ServedResource],
    *,
    conversions: Mapping[str, VersionConversion] | None = None,
) -> list[ServedResource]:
    """Return resources of the storage version as `version` serves them; in the storage version itself, unchanged.

    `conversions` maps plurals to conversions. Other resources have the same fields in both versions.
    """
    by_plural = conversions or {}
    return [
        resource
        if resource.storage_version == version
        else _converted(resource, by_plural.get(resource.names.plural) or _renamed(resource, version))
        for resource in stored
    ]


def _converted(resource: ServedResource, conversion: VersionConversion) -> ServedResource:
    deprecation = deprecation_of(conversion.kind)
    convert_field = resource.convert_field
    if isinstance(convert_field, SelectableFields):
        convert_field = replace(convert_field, kind=conversion.kind)
    return replace(
        resource,
        kind=conversion.kind,
        decoder=TypedDecoder(conversion.kind),
        default=conversion.default,
        to_stored=conversion.to_stored,
        from_stored=conversion.from_stored,
        convert_field=convert_field,
        warning=deprecation.warning(conversion.kind) if deprecation else "",
    )


def _renamed(resource: ServedResource, version: GroupVersion) -> VersionConversion:
    return VersionConversion(
        kind=version.kind(resource.kind.kind),
        to_stored=lambda obj: {**obj, "apiVersion": resource.kind.api_version},
        from_stored=lambda obj: {**obj, "apiVersion": str(version)},
        default=resource.default,
    )


def fitted(kind: GroupVersionKind, obj: Json) -> Json:
    """Return the object in the canonical form of the kind, which decides whether empty fields are written."""
    resource_type = types.of(kind)
    assert resource_type is not None, f"{kind} is no built-in kind"
    return resource_type.fit(obj)
