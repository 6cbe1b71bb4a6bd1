"""API groups for the installer: versions, resources and their storages (upstream's APIGroupInfo)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from pilothouse.apiserver.endpoints.decoding import ObjectDecoder
from pilothouse.apiserver.endpoints.negotiation import ALL_PATCHES, APPLY_CBOR_PATCH, APPLY_PATCH, Views
from pilothouse.apiserver.endpoints.serializers.interface import View
from pilothouse.apiserver.endpoints.serializers.registry import BUILT_IN, CBOR, Serializers, with_cbor
from pilothouse.apiserver.registry.interface import Lister, abilities_of
from pilothouse.apiserver.registry.resource import Names
from pilothouse.apiserver.registry.table import DEFAULT_COLUMNS, Column
from pilothouse.apiserver.server.hooks import PostStartHook
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors import fields

_TABLED_SUBRESOURCES = ("status", "scale")


def no_default(obj: Json) -> None:
    """The defaulting function of kinds without defaults."""


@dataclass(frozen=True)
class ServedResource:
    """A resource or subresource in one version. The storage determines the verbs.

    >>> from pilothouse.apiserver import GroupVersionKind, Names, ServedResource, UnstructuredDecoder
    >>> class Flunders:
    ...     async def get(self, ctx, name, options):
    ...         return {"metadata": {"name": name}}
    >>> kind = GroupVersionKind("wardle.example.com", "v1", "Flunder")
    >>> names = Names("flunders", kind.kind)
    >>> ServedResource(names, True, Flunders(), kind, UnstructuredDecoder(kind), subresource="status").path
    'flunders/status'
    """

    names: Names
    namespaced: bool
    storage: object
    kind: GroupVersionKind
    """The kind of the objects of this endpoint. The kind of a subresource may differ from the kind of its resource."""
    decoder: ObjectDecoder
    subresource: str = ""
    storage_version: GroupVersion | None = None
    """The group and version of the stored objects; None if nothing is stored."""
    storage_path: str = ""
    """The storage path; resources with the same path are views of the same objects. May be empty."""
    default: Callable[[Json], None] = no_default
    to_stored: Callable[[Json], Json] | None = None
    """Converts from this version to the stored form; None if they are identical."""
    from_stored: Callable[[Json], Json] | None = None
    whole_from_stored: Callable[[Json], Json] | None = None
    """Like `from_stored`, but fields that this version does not declare stay; None if `from_stored` drops no field."""
    convert_field: fields.Transform | None = None
    """Rejects field labels that the kind does not support."""
    columns: Sequence[Column] = DEFAULT_COLUMNS
    """Table columns; empty if the resource has no tables."""
    columns_of_version: bool = False
    """Whether the columns read objects in this version instead of the stored form."""
    repeats_columns: bool = False
    """Send column definitions in every event of a watch for tables, not only in the first event."""
    row_order: Callable[[Json], Any] | None = None
    """Sort key of table rows; None keeps the order of the objects."""
    serializers: Serializers = BUILT_IN
    patch_types: tuple[str, ...] = ALL_PATCHES
    typed_items: bool = False
    warning: str = ""
    """The warning in every response; empty for a kind that is not deprecated."""
    removed_release: str = ""
    """The release that removes a deprecated kind, if known."""
    reset_fields: tuple[str, ...] = ()
    """Paths that writes through this endpoint never own."""
    field_annotations: frozenset[str] = frozenset()
    """Annotations that represent removed fields of the kind. Metadata-only responses omit them."""
    returns_deleted_object: bool = False
    """DELETE returns the deleted object instead of a Status."""
    is_confidential: bool = False
    """Errors of patches, which are logged, contain no part of the object."""

    @cached_property
    def view(self) -> View:
        return View(self.kind, self.names.list_kind, self.from_stored, self.typed_items)

    @cached_property
    def views(self) -> Views:
        """The alternative views of the objects. Only listable resources, statuses and scales have tables."""
        listed = Lister in abilities_of(self.storage) or self.subresource in _TABLED_SUBRESOURCES
        return Views.TABLES if listed and self.columns else Views.METADATA

    @property
    def options_serializers(self) -> Serializers:
        """The media types of delete options and errors."""
        return with_cbor(BUILT_IN) if CBOR in self.serializers else BUILT_IN

    def with_cbor(self) -> ServedResource:
        """Return the resource with CBOR as an additional media type."""
        applies = (APPLY_CBOR_PATCH,) if APPLY_PATCH in self.patch_types else ()
        return replace(self, serializers=with_cbor(self.serializers), patch_types=(*self.patch_types, *applies))

    @property
    def path(self) -> str:
        return f"{self.names.plural}/{self.subresource}" if self.subresource else self.names.plural


@dataclass(frozen=True)
class APIVersion:
    """One version of a group, with its resources and subresources.

    >>> from pilothouse.apiserver import APIVersion, GroupVersion
    >>> str(APIVersion(GroupVersion("wardle.example.com", "v1")).group_version)
    'wardle.example.com/v1'
    """

    group_version: GroupVersion
    resources: list[ServedResource] = field(default_factory=list)
    serializers: Serializers = BUILT_IN
    """The media types of the discovery document."""

    def with_cbor(self) -> APIVersion:
        """Return the version with CBOR as an additional media type."""
        resources = [resource.with_cbor() for resource in self.resources]
        return replace(self, resources=resources, serializers=with_cbor(self.serializers))


@dataclass(frozen=True)
class APIGroup:
    """A group with its versions, preferred first. The group with the empty name is served under /api.

    >>> from pilothouse.apiserver import APIGroup, APIVersion, GroupVersion
    >>> APIGroup("wardle.example.com", [APIVersion(GroupVersion("wardle.example.com", "v1"))]).root
    '/apis/wardle.example.com'
    """

    name: str
    versions: list[APIVersion]
    post_start_hooks: dict[str, PostStartHook] = field(default_factory=dict)
    """Work of the group after the server listens, such as the creation of required objects."""

    def with_cbor(self) -> APIGroup:
        """Return the group with CBOR as an additional media type."""
        return replace(self, versions=[version.with_cbor() for version in self.versions])

    @property
    def root(self) -> str:
        return f"/apis/{self.name}" if self.name else "/api"
