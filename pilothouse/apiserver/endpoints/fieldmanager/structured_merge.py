"""Comparison, merging and pruning of objects in the version of the request (upstream's structuredMergeManager), and
the versions in which managers own fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import orjson

from pilothouse.apiserver.endpoints.decoding import ObjectDecoder
from pilothouse.machinery.apply.fieldset import FieldSet, difference, of_fields
from pilothouse.machinery.apply.first_fields import FirstFields
from pilothouse.machinery.apply.managed import ManagerId, VersionedSet
from pilothouse.machinery.apply.typed import Typed
from pilothouse.machinery.apply.updater import Applied, Updater
from pilothouse.machinery.apply.validate import TypedError, check
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.printing import copy_with_text
from pilothouse.machinery.status_error import StatusError


@dataclass(frozen=True, slots=True)
class VersionForm:
    """A resource in one API version. The conversions are None for the stored version."""

    api_version: str
    decoder: ObjectDecoder
    to_stored: Callable[[Json], Json] | None = None
    from_stored: Callable[[Json], Json] | None = None
    whole_from_stored: Callable[[Json], Json] | None = None
    """Like `from_stored`, but undeclared fields stay; None if `from_stored` drops no field."""

    def typed(self, obj: Json) -> Typed:
        """Return an object of this version with its schema. Duplicate list items are allowed. Raises TypedError."""
        if not self.decoder.fits_atom:
            check(self.decoder.atom, obj, allow_duplicates=True)
        return Typed(self.decoder.atom, obj, self.api_version)

    def stored(self, obj: Json) -> Json:
        """Return an applied or merged object of this version in the stored form. Raises TypedError for values that do
        not fit the kind; conversions expect fitting values."""
        try:
            fitting = self.decoder.convert(obj).obj
        except ValueError as error:
            kind = GroupVersion.parse(self.api_version).kind(str(obj.get("kind")))
            raise TypedError(f"unable to convert unstructured object to {kind}: {error}") from None
        return fitting if self.to_stored is None else self.to_stored(copy_of(fitting))

    def tracked(self, obj: Json) -> Json:
        """Return a stored object in the form in which fields are owned: fields that are not printed have no owner."""
        return self.decoder.owned(self.served(obj))

    def served(self, obj: Json) -> Json:
        return obj if self.from_stored is None else self.from_stored(copy_with_text(obj))

    def whole(self, obj: Json) -> Json:
        """Return a stored object in this version with fields that this version does not declare. A dropped field
        would look removed by its manager."""
        if self.from_stored is None or self.whole_from_stored is None:
            return self.served(obj)
        return self.whole_from_stored(copy_with_text(obj))


def copy_of(obj: Json) -> Json:
    """Return a copy that the callee may modify."""
    copy: Json = orjson.loads(orjson.dumps(obj))
    return copy


@dataclass(frozen=True, slots=True)
class VersionConverter:
    """Converts through the stored version."""

    forms: Mapping[str, VersionForm]

    def convert(self, typed: Typed, api_version: str) -> Typed | None:
        """Convert to an API version. Raises TypedError, as upstream also for duplicate list items."""
        if typed.api_version == api_version:
            return typed
        there, here = self.forms.get(api_version), self.forms.get(typed.api_version)
        if there is None or here is None:
            return None
        converted = there.whole(here.stored(typed.value))
        check(there.decoder.atom, converted)
        return Typed(there.decoder.atom, converted, api_version)


@dataclass(frozen=True, slots=True)
class StructuredMerge:
    kind: GroupVersionKind
    form: VersionForm
    forms: Mapping[str, VersionForm]
    """API version -> form, for all versions of the resource."""
    reset_fields: FieldSet
    updater: Updater = field(init=False)
    _first_fields: list[FirstFields] = field(init=False, default_factory=list, repr=False)  # lazily built

    def __post_init__(self) -> None:
        object.__setattr__(self, "updater", Updater(VersionConverter(self.forms), self.reset_fields))

    def update(
        self, live: Json, new: Json, managers: Mapping[ManagerId, VersionedSet], manager: ManagerId
    ) -> dict[ManagerId, VersionedSet]:
        """Return ownership after an update. Raises Unkeyed, TypedError."""
        return self.updater.update(self.form.typed(live), self.form.typed(new), managers, manager)

    def first_fields(self, new: Json) -> FieldSet:
        """Return the fields that the creator of a new object owns. Raises Unkeyed, TypedError."""
        if not self._first_fields:
            empty = self.form.served(self.form.decoder.empty)
            of_kind = FirstFields(self.form.decoder.atom, empty, unowned=UNOWNED, ignored=self.reset_fields)
            self._first_fields.append(of_kind)
        return self._first_fields[0](self.form.typed(new).value)

    def apply(
        self, live: Json, patch: Json, managers: Mapping[ManagerId, VersionedSet], manager: ManagerId, *, force: bool
    ) -> Applied:
        """Merge an applied configuration. Raises StatusError, Unkeyed, TypedError, and Conflicts unless forced."""
        if isinstance(_metadata(patch).get("managedFields"), list):
            raise BadRequest("metadata.managedFields must be nil")
        try:
            check(self.form.decoder.atom, patch)
        except TypedError as error:
            raise StatusError(f"failed to create typed patch object ({self.describe(patch)}): {error}") from None
        config = Typed(self.form.decoder.atom, patch, self.form.api_version)
        return self.updater.apply(self.form.typed(live), config, managers, manager, force=force)

    def misfit(self, stored: Json) -> str:
        """Return the reason why a stored object does not fit the type, or "". Duplicate list items are allowed."""
        try:
            check(self.form.decoder.atom, stored, allow_duplicates=True)
        except TypedError as error:
            return str(error)
        return ""

    def describe(self, obj: Json) -> str:
        """Return namespace, name and kind in the format of upstream's messages."""
        meta = _metadata(obj)
        namespace, name = (value if isinstance(value := meta.get(key), str) else "" for key in ("namespace", "name"))
        return f"{namespace}/{name}; {self.kind}"


def _metadata(obj: Json) -> dict[str, Any]:
    """Return the metadata, or {} if the client sent another type."""
    meta = obj.get("metadata")
    return meta if isinstance(meta, dict) else {}


UNOWNED = of_fields(
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
)
"""Fields without an owner: the server sets them, or they identify the object."""


def strip_meta(managers: dict[ManagerId, VersionedSet], manager: ManagerId) -> dict[ManagerId, VersionedSet]:
    """Remove UNOWNED fields from the set of the manager."""
    versioned = managers.get(manager)
    if versioned is None:
        return managers
    fields = difference(versioned.fields, UNOWNED)
    if fields:
        return managers | {manager: versioned.with_fields(fields)}
    return {other: own for other, own in managers.items() if other != manager}
