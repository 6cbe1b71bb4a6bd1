"""The storage of CustomResourceDefinitions. A delete waits for the finalizer, which deletes the custom resources
first."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.endpoints.typed_resource import served_with_status
from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.registry.operations import Deleted, RequestContext, Validate
from pilothouse.apiserver.registry.options import DeleteOptions, failed_precondition
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.table import CREATED_AT, NAME, Column
from pilothouse.apiserver.storage.errors import RevisionConflict
from pilothouse.apiserver.storage.interface import Store
from pilothouse.extensions.customresourcedefinitions import strategy
from pilothouse.extensions.customresourcedefinitions.conditions import TERMINATING
from pilothouse.kinds.conditions import Condition, is_true, set_condition
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.codec.scheme import EXTENSIONS
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, items, metadata, name_of, text
from pilothouse.machinery.times import now
from pilothouse.machinery.version_rules import holds

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"

_SHOWN_STORAGE_VERSION = GroupVersion(strategy.CUSTOM_RESOURCE_DEFINITIONS.kind.group, "v1beta1")
"""Upstream's storage version; clients compare the storage version hash."""

_DECODER = TypedDecoder(strategy.CUSTOM_RESOURCE_DEFINITIONS.kind, EXTENSIONS)
_PENDING = Condition(
    TERMINATING,
    "True",
    "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
)


class DefinitionStore(RegistryStore):
    def __init__(self, store: Store, *, root: str) -> None:
        super().__init__(strategy.CUSTOM_RESOURCE_DEFINITIONS, store, root=root, empty=_DECODER.empty_content)

    async def delete(self, ctx: RequestContext, name: str, *, options: DeleteOptions, validate: Validate) -> Deleted:
        while True:
            with map_storage_errors(ctx.resource, name):
                current = await self.newest("", name)
                if current is None:
                    raise NotFound.of(ctx.resource, name)
                definition = current.parse()
                if reason := failed_precondition(definition, options.preconditions):
                    raise Conflict.of(ctx.resource, name_of(definition), reason)
                if is_deleting(definition):
                    return await super().delete(ctx, name, options=options, validate=validate)
                try:
                    await validate(current.parse())
                    meta = metadata(definition)
                    meta["deletionTimestamp"] = now()
                    if CLEANUP_FINALIZER not in (finalizers := meta.get("finalizers") or []):
                        meta["finalizers"] = [*finalizers, CLEANUP_FINALIZER]
                    set_condition(definition, _PENDING)
                    marked = await self.replace(current, definition, dry_run=options.dry_run)
                    return Deleted(marked, immediately=False)
                except RevisionConflict:
                    continue


def served_definitions(registry: DefinitionStore) -> list[ServedResource]:
    """Return the resource and its status subresource."""
    resources = served_with_status(registry, strategy.DefinitionStatusStrategy(), _DECODER)
    if holds("DefinitionColumns"):
        resources = [replace(each, columns=_COLUMNS) if each.columns else each for each in resources]
    return [replace(resource, storage_version=_SHOWN_STORAGE_VERSION) for resource in resources]


def _served_versions(obj: Json) -> str:
    served = [version for version in items(obj, "spec", "versions") if version.get("served")]
    return ",".join(sorted(text(version, "name") + "(storage)" * bool(version.get("storage")) for version in served))


_COLUMNS = (
    NAME,
    Column("Scope", lambda obj: text(obj, "spec", "scope"), description="Cluster/Namespaced"),
    Column("Versions", _served_versions, description="Served versions"),
    CREATED_AT,
    Column("Group", lambda obj: text(obj, "spec", "group"), priority=1, description="API group"),
    Column("Kind", lambda obj: text(obj, "spec", "names", "kind"), priority=1, description="CustomResource kind"),
    Column(
        "ShortNames",
        lambda obj: ",".join(items(obj, "spec", "names", "shortNames")),
        priority=1,
        description="Short names",
    ),
    Column(
        "Established",
        lambda obj: is_true(obj, "Established"),
        type="boolean",
        priority=1,
        description="Established status",
    ),
)
"""Columns of releases that print more than name and time."""
