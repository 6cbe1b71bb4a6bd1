"""A resource as its package declares it: names, rules, columns. The installer and the registry do the rest."""

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


@dataclass(frozen=True, slots=True)
class Names:
    """The words by which people and programs call a resource.

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
    """The fields that every namespaced resource can be selected by."""
    return {"metadata.name": name_of(obj), "metadata.namespace": namespace_of(obj)}


def cluster_metadata_fields(obj: Json) -> Fields:
    return {"metadata.name": name_of(obj)}


@dataclass(frozen=True, slots=True)
class Resource:
    """`version` is the storage version: objects are stored, cached and handed to the strategy in that form.

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
    """Every event of a watch for tables defines the columns, and not the first alone."""
    row_order: Callable[[Json], Any] | None = None
    """The sort key for the rows of a list's table; without it, they come as the objects do."""
    fields: Callable[[Json], Fields] | None = None
    """Selectable fields; without it, metadata.name (and metadata.namespace)."""
    zero_value: Json = field(default_factory=dict)
    """Fields that an object in which nothing is set has besides those of its type: what upstream's conversions set."""
    storage_path: str = ""
    """Under the registry's root; upstream's, where it is not the plural."""
    field_annotations: frozenset[str] = frozenset()
    """Annotations that stand for fields which the kind has no longer: its metadata alone is shown without them."""
    returns_deleted_object: bool = False
    """DELETE answers the object that was deleted instead of a Status."""
    has_watch_cache: bool = True
    """Whether upstream keeps a watch cache of the resource: without one, a request for a future resourceVersion is told
    to retry at once."""
    is_confidential: bool = False
    """Refusals of patches, which are logged, show nothing of the object."""
    indexed_fields: Sequence[str] = ("metadata.name",)
    """Selectable fields by which lists are narrowed without a look at every object, the most telling first."""
    from_older: Callable[[Json], None] | None = None
    """As in ObjectCodec."""
    extra_field_labels: frozenset[str] = field(default_factory=frozenset)
    """Field labels that selectors may name besides the keys of `fields`."""
    unsupported_label: Callable[[str], str] = label_not_supported
    """How a kind with fields of its own refuses another label."""

    @property
    def namespaced(self) -> bool:
        return self.strategy.namespaced

    kind: GroupVersionKind = field(init=False, compare=False, repr=False)
    group_resource: GroupResource = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", GroupVersionKind(self.group, self.version, self.names.kind))
        object.__setattr__(self, "group_resource", GroupResource(self.group, self.names.plural))

    def columns_of(self, subresource: str) -> Sequence[Column]:
        """None for a subresource of which no tables can be had."""
        return () if subresource == "status" and not self.status_has_tables else self.columns

    def fields_of(self, obj: Json) -> Fields:
        if self.fields is not None:
            return self.fields(obj)
        return metadata_fields(obj) if self.namespaced else cluster_metadata_fields(obj)
