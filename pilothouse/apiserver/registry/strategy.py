"""The rules of one resource. A strategy says only what is its own; everything generic is done around it.

Order of a create:  defaults → admission → prepare_for_create → validate → warnings → canonicalize → stored
Order of an update: defaults → admission → prepare_for_update → validate_update → warnings → canonicalize → stored
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import ClassVar, TypeAlias

from pilothouse.apiserver.authn.user import User
from pilothouse.machinery.field import Errors, Path, located, root
from pilothouse.machinery.names_generator import generate_name
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.object_meta import METADATA, validate_object_meta, validate_object_meta_update
from pilothouse.machinery.validation.object_names import name_is_dns_subdomain

NameRule: TypeAlias = Callable[[str, bool], list[str]]
"""Returns the problems of a name; the flag says that it is only a generateName prefix."""


class GarbageCollection(Enum):
    """The treatment of dependents by a delete that does not say."""

    DELETE_DEPENDENTS = "DeleteDependents"
    ORPHAN_DEPENDENTS = "OrphanDependents"
    UNSUPPORTED = "Unsupported"


class Strategy:
    """The default rules: what most resources do.

    >>> from pilothouse.apiserver import Errors, Json, Strategy, required
    >>> class FlunderStrategy(Strategy):
    ...     def validate(self, obj: Json) -> Errors:
    ...         yield from super().validate(obj)
    ...         if not obj["spec"].get("colour"):
    ...             yield required("spec.colour")
    >>> [str(error) for error in FlunderStrategy().validate({"metadata": {"name": "a", "namespace": "b"}, "spec": {}})]
    ['spec.colour: Required value']
    """

    namespaced: bool = True
    allow_create_on_update: ClassVar[bool] = False
    allow_unconditional_update: ClassVar[bool] = True
    validates_generate_name: ClassVar[bool] = True
    """Whether the prefix of a generated name must follow the rule of names, too, or only what is made from it."""
    garbage_collection: ClassVar[GarbageCollection] = GarbageCollection.DELETE_DEPENDENTS
    reset_fields: ClassVar[tuple[str, ...]] = ()
    """Paths that writes through this strategy never own, such as `status` for the main resource."""

    def name_rule(self, name: str, prefix: bool) -> list[str]:
        return name_is_dns_subdomain(name, prefix)

    def generate_name(self, prefix: str) -> str:
        return generate_name(prefix)

    def default(self, obj: Json) -> None:
        """Fills in what the version's defaults are. Called on every object that is decoded."""

    def complete_stored(self, obj: Json) -> None:
        """Brings an object that kube-apiserver has stored, perhaps an older one, into the form in which it shows it."""
        self.default(obj)

    def prepare_for_create(self, obj: Json) -> None:
        """Drops what a creator may not set."""

    def prepare_for_create_by(self, user: User, obj: Json) -> None:
        """For the few resources that record who created them; for all others who it is does not matter."""
        self.prepare_for_create(obj)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return ()

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        """Carries over what an updater may not change."""

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return ()

    def canonicalize(self, obj: Json) -> None:
        """Brings a valid object into the one form that is stored."""

    def grace_period(self, obj: Json, requested: int | None) -> int | None:
        """Seconds between a delete and the end of the object; None where the resource knows no graceful deletion."""
        return None

    def may_delete_during_update(self, obj: Json, old: Json) -> bool:
        """Whether an update that removes the last finalizer of a deleted object may end it."""
        return True

    def ttl(self, obj: Json) -> int:
        """Seconds until the store removes the object by itself; 0 for never."""
        return 0

    def validate_metadata(self, obj: Json) -> Errors:
        def validate(path: Path) -> Errors:
            return validate_object_meta(
                obj["metadata"],
                namespaced=self.namespaced,
                name_rule=self.name_rule,
                path=path,
                prefix_rule=self.validates_generate_name,
            )

        return located(validate, METADATA)

    def validate_metadata_update(self, obj: Json, old: Json) -> Errors:
        return validate_object_meta_update(obj["metadata"], old["metadata"], path=root("metadata"))
