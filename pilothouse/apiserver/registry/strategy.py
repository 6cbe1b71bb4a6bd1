"""The rules of one resource. A strategy contains only rules of its own kind; the registry runs the generic ones.

Order of a create:  defaults → admission → prepare_for_create → validate → warnings → canonicalize → stored
Order of an update: defaults → admission → prepare_for_update → validate_update → warnings → canonicalize → stored

Hooks run around writes that concern more than one object: allocation from a pool, and release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from enum import Enum
from typing import ClassVar, TypeAlias

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.field import Errors, FieldError, Path, located, root
from pilothouse.machinery.names_generator import generate_name
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import name_is_dns_subdomain
from pilothouse.machinery.validation.object_meta import METADATA, validate_object_meta, validate_object_meta_update

NameRule: TypeAlias = Callable[[str, bool], list[str]]
"""Returns the problems of a name; the flag marks a generateName prefix."""


class GarbageCollection(Enum):
    """The default propagation policy of deletes."""

    DELETE_DEPENDENTS = "DeleteDependents"
    ORPHAN_DEPENDENTS = "OrphanDependents"
    UNSUPPORTED = "Unsupported"


class Strategy:
    """The default rules, which fit most resources.

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
    """Whether generateName must be a valid name prefix, or only the generated name is checked."""
    garbage_collection: ClassVar[GarbageCollection] = GarbageCollection.DELETE_DEPENDENTS
    reset_fields: ClassVar[tuple[str, ...]] = ()
    """Paths that writes through this strategy never own, such as `status` for the main resource."""
    validates_updates_as_creates: ClassVar[bool] = False
    """Whether updates follow the rules of creates, and the stored object does not matter."""
    repeats_warnings_on_update: ClassVar[bool] = False
    """Whether updates get the warnings of creates."""

    def name_rule(self, name: str, prefix: bool) -> list[str]:
        return name_is_dns_subdomain(name, prefix)

    def generate_name(self, prefix: str) -> str:
        return generate_name(prefix)

    def default(self, obj: Json) -> None:
        """Set the defaults of the version. Called for every decoded object."""

    def complete_stored(self, obj: Json) -> None:
        """Convert an object that kube-apiserver stored, perhaps an older version, to its current form."""
        self.default(obj)

    def prepare_for_create(self, obj: Json) -> None:
        """Remove fields that creators must not set."""

    def prepare_for_create_by(self, user: User, obj: Json) -> None:
        """Record the creator, for the few resources that do."""
        self.prepare_for_create(obj)

    def warnings_of_preparation(self, obj: Json) -> Iterable[str]:
        """Return the warnings that a new object gets even if its validation fails."""
        return ()

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return ()

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        """Restore fields that updates must not change."""

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return self.validate(obj) if self.validates_updates_as_creates else self.validate_metadata_update(obj, old)

    def validate_again(self, obj: Json, old: Json) -> Errors:
        """Validate an update by the rules of creates and of metadata updates."""
        yield from self.validate(obj)
        yield from self.validate_metadata_update(obj, old)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return self.warnings_on_create(obj) if self.repeats_warnings_on_update else ()

    def canonicalize(self, obj: Json) -> None:
        """Normalize a valid object before it is stored."""

    def grace_period(self, obj: Json, requested: int | None) -> int | None:
        """Return the seconds between a delete and the removal; None if the resource has no graceful deletion."""
        return None

    def may_delete_during_update(self, obj: Json, old: Json) -> bool:
        """Return whether an update that removes the last finalizer of a deleted object may remove the object."""
        return True

    def ttl(self, obj: Json) -> int:
        """Return the seconds until the store removes the object; 0 means never."""
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


Objections: TypeAlias = Sequence[FieldError] | None


class Hooks:
    """The hooks of one resource. The default hooks are no-ops.

    A create or update runs inside its hook. The hook receives the object before the strategy. If the write fails, the
    error propagates through the hook, which then undoes its changes. A hook may yield validation errors: the object is
    rejected for these first, then for the errors of the strategy.
    """

    def around_create(self, obj: Json, *, dry_run: bool) -> AbstractAsyncContextManager[Objections]:
        return _NO_CONTEXT

    def around_update(self, obj: Json, old: Json, *, dry_run: bool) -> AbstractAsyncContextManager[Objections]:
        return _NO_CONTEXT

    async def after_delete(self, deleted: StoredObject, *, dry_run: bool) -> None:
        """Called with the last state of a removed object; in a dry run, with the object that would be removed."""


_NO_CONTEXT = nullcontext()  # stateless

NO_HOOKS = Hooks()
