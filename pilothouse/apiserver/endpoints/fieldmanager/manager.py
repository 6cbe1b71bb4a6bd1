"""FieldManager: maintains metadata.managedFields of one resource in one version, and merges applied configurations.

update   managedFields of the request or the stored object → new ownership → managedFields of the new object
apply    the same; the new object is merged from the stored object and the applied configuration

A write that changes nothing keeps the timestamps of its manager.
"""

from __future__ import annotations

from typing import Any

from pilothouse.apiserver.endpoints.fieldmanager.last_applied import KUBECTL, keep_up_to_date, remaining_conflicts
from pilothouse.apiserver.endpoints.fieldmanager.structured_merge import StructuredMerge, copy_of, strip_meta
from pilothouse.machinery.apply.atoms import Unkeyed
from pilothouse.machinery.apply.elements import InvalidElement
from pilothouse.machinery.apply.fieldset import union
from pilothouse.machinery.apply.managed import (
    APPLY,
    UPDATE,
    Conflicts,
    InvalidManagedFields,
    Managed,
    ManagerId,
    VersionedSet,
    decode_entries,
    encode_entries,
    manager_id,
    set_entries,
)
from pilothouse.machinery.apply.validate import TypedError
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest, Conflict
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json, metadata, uid_of
from pilothouse.machinery.schema.printing import exact_copy
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import now
from pilothouse.machinery.validation.object_meta import FIELD_MANAGER_MAX_LENGTH

_BEFORE_FIRST_APPLY = "before-first-apply"
_UNKNOWN = "unknown"
_CURRENT_OPERATION = ManagerId("current-operation", "", "")
"""Temporary manager of an update: collects the changed fields before they are added to the manager's entry."""


_MISFITS = (Unkeyed, InvalidElement, TypedError)
"""The object or its managedFields do not fit the schema, so the changed fields are unknown."""


@dataclass(frozen=True, slots=True)
class _Merged:
    """The object in the version of the request; None if nothing changed."""

    obj: Json | None
    managed: Managed


@dataclass(frozen=True, slots=True)
class FieldManager:
    merge: StructuredMerge
    subresource: str = ""

    def update(self, live: Json | None, new: Json, manager: str) -> None:
        """Update managedFields of `new`. Objects are in the stored form. If the changed fields are unknown,
        managedFields are removed."""
        managed = self._live_or_new(self._empty() if live is None else live, new)
        metadata(new).pop("managedFields", None)
        if not managed.sets and live is not None and uid_of(live):
            # The object has never been tracked.
            return
        try:
            form = self.merge.form
            if live is None and not managed.sets:
                managed = self._created(form.tracked(new), manager)
            else:
                old = form.tracked(self._empty() if live is None else live)
                managed = self._track(old, form.tracked(new), managed, manager)
        except _MISFITS:
            return
        set_entries(new, encode_entries(managed))

    def apply(self, live: Json | None, patch: Json, manager: str, *, force: bool) -> Json:
        """Return the new object in the version of the request, without defaults. Raises StatusError."""
        found = _kind_of(patch)
        if found != self.merge.kind:
            raise BadRequest(f"invalid object type: {found}")
        form = self.merge.form
        live = exact_copy(self._empty() if live is None else form.served(live), form.decoder.printed)
        entries = metadata(live).pop("managedFields", None)
        try:
            managed = decode_entries(entries, stored=True)
        except InvalidManagedFields as error:
            raise StatusError(f"failed to decode managed fields: {error}") from None
        # Unlike an update, an apply compares values, not the text of raw values.
        shown = form.decoder.printed(live)
        if not managed.sets:
            managed = self._before_first_apply(shown, managed)
        merged = self._apply(shown, patch, managed, manager, force=force)
        obj = live if merged.obj is None else self._converted(merged.obj, patch)
        set_entries(obj, encode_entries(merged.managed))
        if manager == KUBECTL:
            keep_up_to_date(obj, patch)
        return obj

    def _apply(self, live: Json, patch: Json, managed: Managed, manager: str, *, force: bool) -> _Merged:
        try:
            return self._merged(live, patch, managed, manager, force=force)
        except Conflicts as conflicts:
            left: Conflicts | None = conflicts
            if manager == KUBECTL:
                left = remaining_conflicts(conflicts, self.merge.form.decoder.atom, live, self._api_version)
            if left is not None:
                raise Conflict(str(left), details={"causes": left.causes}) from None
        return self._merged(live, patch, managed, manager, force=True)

    def _merged(self, live: Json, patch: Json, managed: Managed, manager: str, *, force: bool) -> _Merged:
        applier = manager_id(manager, APPLY, self._api_version, self.subresource)
        try:
            applied = self.merge.apply(live, patch, managed.sets, applier, force=force)
        except _MISFITS as error:
            reason = self.merge.misfit(live)
            shown = f"failed to create typed live object ({self.merge.describe(live)}): {reason}"
            raise StatusError(shown if reason else str(error)) from None
        sets = strip_meta(applied.managers, applier)
        managed = Managed(sets, managed.times | {applier: now()} if applied.changed else managed.times)
        return _Merged(applied.value if applied.changed else None, managed)

    def _before_first_apply(self, live: Json, managed: Managed) -> Managed:
        """Return ownership before the first apply: a single manager owns all existing fields. Raises StatusError."""
        try:
            return self._track(self._empty(), live, managed, _BEFORE_FIRST_APPLY)
        except _MISFITS as error:
            reason = f"({self.merge.describe(live)}) to smd typed: {self.merge.misfit(live) or error}"
            raise StatusError(
                f"failed to create manager for existing fields: failed to convert new object {reason}"
            ) from None

    def _created(self, new: Json, manager: str) -> Managed:
        """Raises one of _MISFITS."""
        fields = self.merge.first_fields(new)
        if not fields:
            return Managed()
        creator = manager_id(manager or _UNKNOWN, UPDATE, self._api_version, self.subresource)
        return Managed({creator: VersionedSet(fields, self._api_version, applied=False)}, {creator: now()})

    def _track(self, live: Json, new: Json, managed: Managed, manager: str) -> Managed:
        """Raises one of _MISFITS."""
        sets = strip_meta(self.merge.update(live, new, managed.sets, _CURRENT_OPERATION), _CURRENT_OPERATION)
        updater = manager_id(manager or _UNKNOWN, UPDATE, self._api_version, self.subresource)
        return cap_managers(_after_update(managed, sets, updater))

    def _live_or_new(self, live: Json, new: Json) -> Managed:
        """Return managedFields of the request or of the stored object. Subresources, and requests without
        managedFields, cannot change them."""
        known, sent = metadata(live).get("managedFields"), metadata(new).get("managedFields")
        if self.subresource or sent is None or sent == known:
            return _decoded(known, stored=True)
        if sent in ([], [{}]):
            return Managed()
        managed = _decoded(sent)
        return managed if managed.sets else _decoded(known, stored=True)

    def _converted(self, obj: Json, patch: Json) -> Json:
        try:
            return self.merge.form.decoder.convert(copy_of(obj)).obj
        except ValueError as error:
            reason = f"unable to convert unstructured object to {self.merge.kind}: {error}"
            shown = self.merge.describe(patch)
            raise StatusError(f"failed to convert new object ({shown}) to proper version: {reason}") from None

    def _empty(self) -> Json:
        return self.merge.form.decoder.empty

    @property
    def _api_version(self) -> str:
        return self.merge.form.api_version


def _decoded(entries: Any, *, stored: bool = False) -> Managed:
    """Return the decoded entries; empty if they are invalid."""
    try:
        return decode_entries(entries, stored=stored)
    except InvalidManagedFields:
        return Managed()


def _kind_of(patch: Json) -> GroupVersionKind:
    api_version, kind = patch.get("apiVersion"), patch.get("kind")
    try:
        group_version = GroupVersion.parse(api_version if isinstance(api_version, str) else "")
    except ValueError:
        return GroupVersionKind("", "", "")
    return group_version.kind(kind if isinstance(kind, str) else "")


def _after_update(managed: Managed, sets: dict[ManagerId, VersionedSet], manager: ManagerId) -> Managed:
    taken = sets.pop(_CURRENT_OPERATION, None)
    if taken is None:
        return Managed(sets, managed.times)
    previous = sets.get(manager)
    sets[manager] = taken if previous is None else taken.with_fields(union(taken.fields, previous.fields))
    return Managed(sets, managed.times | {manager: now()})


MAX_UPDATE_MANAGERS = 10
ANCIENT_CHANGES = "ancient-changes"


def cap_managers(managed: Managed, limit: int = MAX_UPDATE_MANAGERS) -> Managed:
    """Merge the oldest managers of updates in each version into `ancient-changes` if there are more than the limit."""
    updaters = [manager for manager, versioned in managed.sets.items() if not versioned.applied]
    excess = len(updaters) - limit
    if excess <= 0:
        return managed
    updaters.sort(key=lambda manager: (managed.times.get(manager, ""), manager.encoded))
    out = Managed(dict(managed.sets), dict(managed.times))
    oldest: dict[str, ManagerId] = {}
    for manager in updaters:
        version = managed.sets[manager].api_version
        if excess and version in oldest:
            _put_into_bucket(out, oldest[version], manager)
            excess -= 1
        oldest.setdefault(version, manager)
    return out


def _put_into_bucket(managed: Managed, first: ManagerId, manager: ManagerId) -> None:
    """Merge the entry into the bucket, which is named after its oldest manager and has the time of its newest."""
    merged = managed.sets.pop(manager)
    bucket = manager_id(ANCIENT_CHANGES, UPDATE, merged.api_version)
    if bucket not in managed.sets:
        managed.sets[bucket] = managed.sets.pop(first)
    managed.sets[bucket] = merged.with_fields(union(merged.fields, managed.sets[bucket].fields))
    if manager in managed.times:
        managed.times[bucket] = managed.times[manager]
    else:
        managed.times.pop(bucket, None)


def manager_or_user_agent(manager: str, user_agent: str) -> str:
    """Return the field manager of a write: the requested one, or the name of the user agent."""
    return manager or _prefix(user_agent)


@bounded_cache(entries=1024, key_bytes=512)
def _prefix(user_agent: str) -> str:
    """Return `kubectl` for `kubectl/v1.36.4 (linux/amd64) …`, truncated to the maximum length of a manager name."""
    out, size = [], 0
    for char in user_agent.partition("/")[0]:
        if not char.isprintable():
            continue
        size += len(char.encode())
        if size > FIELD_MANAGER_MAX_LENGTH:
            break
        out.append(char)
    return "".join(out)
