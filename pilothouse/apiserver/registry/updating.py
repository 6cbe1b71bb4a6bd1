"""Update: read, make the new object, check, write; retry on conflict.

An update that changes only times in managedFields is a no-op: the times are reverted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pilothouse.apiserver.registry import creating
from pilothouse.apiserver.registry.before import before_update
from pilothouse.apiserver.registry.errors import MODIFIED, map_storage_errors
from pilothouse.apiserver.registry.finalizers_and_grace import should_delete_during_update
from pilothouse.apiserver.registry.metadata import fill_system_fields, wipe_system_fields
from pilothouse.apiserver.registry.operations import RequestContext, Result, Updated, UpdateRequest
from pilothouse.apiserver.registry.options import Preconditions, failed_precondition, invalid_object
from pilothouse.apiserver.registry.resource_version import object_resource_version
from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.apiserver.tracing.spans import SpanAttributes, audited, event, spanned
from pilothouse.machinery import version_rules
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Conflict, Invalid, NotFound
from pilothouse.machinery.field import invalid, root
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.schema.raw_json import dump_exactly
from pilothouse.machinery.validation.object_meta import VERSION_REQUIRED

if TYPE_CHECKING:
    from pilothouse.apiserver.registry.store import RegistryStore


class _LastFinalizerGone(Exception):
    """Ends an update because the object is removed instead. The hooks see a failure."""


@dataclass(frozen=True, slots=True)
class Update:
    registry: RegistryStore
    ctx: RequestContext
    name: str
    asked: UpdateRequest

    @spanned("GuaranteedUpdate etcd3", lambda self: self._of_span())
    async def run(self) -> Updated:
        """Run the update. Terminates, because every retry means that another write succeeded. Raises NotFound,
        Conflict, Invalid."""
        key = self.registry.keys.object(self.ctx.namespace, self.name)
        allow_create = self.asked.force_allow_create or self.registry.strategy.allow_create_on_update
        while True:
            with map_storage_errors(self.ctx.resource, self.name):
                current = await self.registry.objects.get(key)
                event("initial value restored")
                try:
                    if current is not None:
                        return await self._update(current)
                    if not allow_create:
                        raise NotFound.of(self.ctx.resource, self.name)
                    self._check_uid(key, {})
                    return await self._create(key)
                except (RevisionConflict, KeyExists, KeyNotFound):
                    continue

    def _of_span(self) -> SpanAttributes:
        key, resource = self.registry.keys.object(self.ctx.namespace, self.name), self.registry.resource
        of = {"key": key, "type": resource.kind.kind, "group": resource.group_resource.group}
        return audited({**of, "resource": resource.group_resource.resource})

    async def _create(self, key: str) -> Updated:
        obj = await self.asked.make(None)
        object_resource_version(obj)
        # No client can have seen a version of a missing object, so the version is not a precondition.
        metadata(obj).pop("resourceVersion", None)
        if version_rules.holds("WipedMetadata"):
            wipe_system_fields(obj)
        fill_system_fields(obj)
        async with self.registry.hooks.around_create(obj, dry_run=self.asked.options.dry_run) as objections:
            await creating.prepare(self.registry, self.ctx, obj, self.asked.validate_create, objections)
            ttl = self.registry.strategy.ttl(obj)
            result = await self.registry.objects.create(
                key, obj, ttl=ttl, dry_run=self.asked.options.dry_run, weight=self.ctx.weight
            )
            return Updated(result, created=True)

    async def _update(self, current: StoredObject) -> Updated:
        weight = self.ctx.weight
        weight.at_least(current.size)
        old = await weight.run(current.parse)
        self._check_uid(current.key, old)
        obj = await self.asked.make(await weight.run(current.parse))
        self._check_resource_version(obj, current)
        try:
            async with self.registry.hooks.around_update(obj, old, dry_run=self.asked.options.dry_run) as objections:
                kind = self.registry.resource.kind.group_kind
                await weight.run_or_restart(before_update, self.registry.strategy, self.ctx, kind, obj, old, objections)
                await self.asked.validate_update(obj, old)
                if should_delete_during_update(self.registry.strategy, obj, old):
                    raise _LastFinalizerGone
                return Updated(await self._write(current, obj, old))
        except _LastFinalizerGone:
            await self.registry.objects.delete(current, dry_run=self.asked.options.dry_run)
            await self.registry.hooks.after_delete(current, dry_run=self.asked.options.dry_run)
            return Updated(obj)

    async def _write(self, current: StoredObject, obj: Json, old: Json) -> Result:
        """Write the object. An update without changes is not written, unless it brings the stored form up to date."""
        if await self.ctx.weight.run(_is_stored, current, self.registry.objects.stored, obj, old):
            return current
        ttl = self.registry.strategy.ttl(obj)
        return await self.registry.objects.update(
            current, obj, ttl=ttl, dry_run=self.asked.options.dry_run, weight=self.ctx.weight
        )

    def _check_uid(self, key: str, old: Json) -> None:
        """Raises Conflict if the uid differs. A missing object has no uid, so any required uid fails."""
        if reason := failed_precondition(old, Preconditions(self.asked.uid or None)):
            shown = self.registry.keys.in_messages(key, dry_run=self.asked.options.dry_run)
            raise Conflict.of(self.ctx.resource, self.name, invalid_object(shown, reason))

    def _check_resource_version(self, obj: Json, current: StoredObject) -> None:
        """Check the version of the update. Without a version, the update is unconditional if the strategy allows
        that."""
        version = object_resource_version(obj)
        if version == 0 and not self.registry.strategy.allow_unconditional_update:
            kind = GroupKind(self.ctx.resource.group, self.ctx.resource.resource)
            path = root("metadata", "resourceVersion")
            raise Invalid.of(kind, self.name, [invalid(path, 0, VERSION_REQUIRED)])
        if version not in (0, current.revision):
            raise Conflict.of(self.ctx.resource, self.name, MODIFIED)
        metadata(obj)["resourceVersion"] = str(current.revision)


def _is_stored(current: StoredObject, stored: Callable[[Json], Json], obj: Json, old: Json) -> bool:
    """Return whether the store already has `obj`. If only times have changed, revert them."""
    new = stored(obj)
    if _only_timestamps_differ(new, old):
        for changed in (obj, new):
            metadata(changed)["managedFields"] = metadata(old)["managedFields"]
    unchanged = new == old and _canonical(new) == _canonical(old)
    return unchanged and not current.stale and current.is_shown_as_stored()


def _canonical(obj: Json) -> bytes:
    """Encode for comparison: Python treats True and 1 as equal, JSON does not."""
    return dump_exactly(obj, sort_keys=True)


def _only_timestamps_differ(new: Json, old: Json) -> bool:
    """Return whether nothing but times in managedFields differ. Both objects are in their stored form, in which some
    empty maps and lists do not exist: applying `labels: {}` again changes nothing."""
    new_entries, old_entries = metadata(new).get("managedFields"), metadata(old).get("managedFields")
    if not new_entries or new_entries == old_entries or _without_times(new_entries) != _without_times(old_entries):
        return False
    return _without_entries(new) == _without_entries(old)


def _without_times(entries: Any) -> list[Json]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries or ()]


def _without_entries(obj: Json) -> Json:
    meta = {key: value for key, value in metadata(obj).items() if key != "managedFields"}
    return {**obj, "metadata": meta}
