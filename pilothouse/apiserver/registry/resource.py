"""The declaration of a resource: names, strategy, columns. The installer and the registry implement the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.registry.table import Column
from pilothouse.apiserver.storage.object import Fields
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource, GroupVersionKind
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.selectors.fields import label_not_supported
from pilothouse.machinery.version_rules import in_versions


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a resource.

    >>> from pilothouse.apiserver import Names
    >>> Names("flunders", "Flunder", short=["fl"]).list_kind
    'FlunderList'
    """

    plural: str
    kind: str
    singular: str = ""
    list_kind: str = ""
    short: Sequence[str] = ()
    categories: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "singular", self.singular or self.kind.lower())
        object.__setattr__(self, "list_kind", self.list_kind or f"{self.kind}List")


def metadata_fields(obj: Json) -> Fields:
    """Return the selectable fields of every namespaced resource."""
    return {"metadata.name": name_of(obj), "metadata.namespace": namespace_of(obj)}


def cluster_metadata_fields(obj: Json) -> Fields:
    return {"metadata.name": name_of(obj)}


@dataclass(frozen=True, slots=True)
class Resource:
    """`version` is the storage version: objects are stored, cached and passed to the strategy in this version.

    >>> from pilothouse.apiserver import AGE, NAME, Names, Resource, Strategy
    >>> flunders = Resource(Names("flunders", "Flunder"), Strategy(), "wardle.example.com", columns=[NAME, AGE])
    >>> str(flunders.kind)
    'wardle.example.com/v1, Kind=Flunder'
    """

    names: Names
    strategy: Strategy
    group: str = ""
    version: str = "v1"
    columns: Sequence[Column] = ()
    status: Strategy | None = None
    """Strategy of the status subresource; None for a resource without one."""
    status_has_tables: bool = True
    repeats_columns: bool = False
    """Send column definitions in every event of a watch for tables, not only in the first event."""
    row_order: Callable[[Json], Any] | None = None
    """Sort key of table rows; None keeps the order of the objects."""
    fields: Callable[[Json], Fields] | None = None
    """Selectable fields; the default is metadata.name (and metadata.namespace)."""
    zero_value: Json = field(default_factory=dict)
    """Fields of an empty object besides the fields of its type: upstream's conversions set them."""
    storage_path: str = ""
    """Path below the registry's root, if upstream's path is not the plural."""
    field_annotations: frozenset[str] = frozenset()
    """Annotations that represent removed fields of the kind. Metadata-only responses omit them."""
    returns_deleted_object: bool = False
    """DELETE returns the deleted object instead of a Status."""
    has_watch_cache: bool = True
    """Whether upstream keeps a watch cache of the resource. Without a watch cache, a request for a future
    resourceVersion gets no Retry-After delay."""
    is_confidential: bool = False
    """Errors of patches, which are logged, contain no part of the object."""
    indexed_fields: Sequence[str] = ("metadata.name",)
    """Selectable fields with an index, most selective first."""
    from_older: Callable[[Json], None] | None = None
    """As in ObjectCodec."""
    extra_field_labels: frozenset[str] = field(default_factory=frozenset)
    """Field labels that selectors may use besides the keys of `fields`."""
    unsupported_label: Callable[[GroupVersionKind, str], str] = lambda _, label: label_not_supported(label)
    """Returns the error for an unsupported field label in a selector of the served kind."""

    @property
    def namespaced(self) -> bool:
        return self.strategy.namespaced

    kind: GroupVersionKind = field(init=False, compare=False, repr=False)
    group_resource: GroupResource = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", GroupVersionKind(self.group, self.version, self.names.kind))
        object.__setattr__(self, "group_resource", GroupResource(self.group, self.names.plural))

    def columns_of(self, subresource: str) -> Sequence[Column]:
        """Return the columns of this release; empty for a subresource without tables."""
        if subresource == "status" and not self.status_has_tables:
            return ()
        return [column for column in self.columns if not column.versions or in_versions(column.versions)]

    def fields_of(self, obj: Json) -> Fields:
        if self.fields is not None:
            return self.fields(obj)
        return metadata_fields(obj) if self.namespaced else cluster_metadata_fields(obj)
