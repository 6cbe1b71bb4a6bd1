"""API groups as they are handed to the installer: versions, and in each the resources with their storages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from pilothouse.apiserver.endpoints.decoding import ObjectDecoder
from pilothouse.apiserver.endpoints.negotiation import Views
from pilothouse.apiserver.endpoints.patch_types import ALL_PATCHES, APPLY_CBOR_PATCH, APPLY_PATCH
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
    """A kind without defaults."""


@dataclass(frozen=True)
class ServedResource:
    """A resource, or a subresource of it, in one version. What its storage can do decides its verbs.

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
    """The kind of the objects that this endpoint takes and gives; a subresource may have another than its resource."""
    decoder: ObjectDecoder
    subresource: str = ""
    storage_version: GroupVersion | None = None
    """The group and version its objects are stored at; None where nothing is stored."""
    storage_path: str = ""
    """Where its objects are stored, which tells that those of another group or version are the same; may be empty."""
    default: Callable[[Json], None] = no_default
    to_stored: Callable[[Json], Json] | None = None
    """From this version to the stored form; None where they are the same."""
    from_stored: Callable[[Json], Json] | None = None
    convert_field: fields.Transform | None = None
    """Refuses field labels that the kind does not have."""
    columns: Sequence[Column] = DEFAULT_COLUMNS
    """Of its tables; empty where there are none."""
    columns_of_version: bool = False
    """The columns are made for objects of this version, and not for their stored form."""
    repeats_columns: bool = False
    """Every event of a watch for tables defines the columns, and not the first alone."""
    row_order: Callable[[Json], Any] | None = None
    """The sort key for the rows of a list's table; without it, they come as the objects do."""
    serializers: Serializers = BUILT_IN
    patch_types: tuple[str, ...] = ALL_PATCHES
    typed_items: bool = False
    warning: str = ""
    """What every answer warns of; empty for a kind that is not deprecated."""
    removed_release: str = ""
    """The release that has a deprecated kind no more, where that is known."""
    reset_fields: tuple[str, ...] = ()
    """Paths that writes through this endpoint never own."""
    field_annotations: frozenset[str] = frozenset()
    """Annotations that stand for fields which the kind has no longer: its metadata alone is shown without them."""
    returns_deleted_object: bool = False
    """DELETE answers the object that was deleted instead of a Status."""
    is_confidential: bool = False
    """Refusals of patches, which are logged, show nothing of the object."""

    @cached_property
    def view(self) -> View:
        return View(self.kind, self.names.list_kind, self.from_stored, self.typed_items)

    @cached_property
    def views(self) -> Views:
        """The other forms in which its objects can be had. Only what is listed, and statuses and scales, has tables."""
        listed = Lister in abilities_of(self.storage) or self.subresource in _TABLED_SUBRESOURCES
        return Views.TABLES if listed and self.columns else Views.METADATA

    @property
    def options_serializers(self) -> Serializers:
        """For what is about no object of the resource: options of deletes, errors."""
        return with_cbor(BUILT_IN) if CBOR in self.serializers else BUILT_IN

    def with_cbor(self) -> ServedResource:
        """Return the same resource, in CBOR, too."""
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
    """For the discovery document that names the resources."""

    def with_cbor(self) -> APIVersion:
        """Return the same version, in CBOR, too."""
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
    """Work of the group once the server listens, such as creating objects that must exist."""

    def with_cbor(self) -> APIGroup:
        """Return the same group, in CBOR, too."""
        return replace(self, versions=[version.with_cbor() for version in self.versions])

    @property
    def root(self) -> str:
        return f"/apis/{self.name}" if self.name else "/api"
