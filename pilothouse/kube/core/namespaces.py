"""Namespaces: created Active with the kubernetes finalizer, removed when spec.finalizers is empty."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.registry.finalizers_and_grace import FOREGROUND, ORPHAN
from pilothouse.apiserver.registry.operations import Deleted, RequestContext, Validate
from pilothouse.apiserver.registry.options import DeleteOptions, failed_precondition
from pilothouse.apiserver.registry.resource import Names, Resource, cluster_metadata_fields
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.registry.view import OneByOneView
from pilothouse.apiserver.storage.errors import RevisionConflict
from pilothouse.apiserver.storage.object import Fields
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kube.strategy import (
    KUBERNETES_FINALIZER,
    SeparateStatusStrategy,
    StatusSubresource,
    validate_kube_finalizer,
)
from pilothouse.kube.validation.fields import qualified_name
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.field import Errors, Path, invalid, root
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, metadata, name_of, uid_of
from pilothouse.machinery.times import now
from pilothouse.machinery.validation.names import name_is_dns_label

NAME_LABEL = "kubernetes.io/metadata.name"
_NAMESPACES = GroupResource("", "namespaces")


class NamespaceStrategy(SeparateStatusStrategy):
    namespaced = False
    kept_on_update: ClassVar[tuple[str, ...]] = ("spec", "status")
    name_rule = staticmethod(name_is_dns_label)
    validate_update = SeparateStatusStrategy.validate_again

    def default(self, obj: Json) -> None:
        if name_of(obj):
            _label(obj)
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        status["phase"] = status.get("phase") or "Active"

    def prepare_for_create(self, obj: Json) -> None:
        obj["status"] = {"phase": "Active"}
        finalizers = obj["spec"].setdefault("finalizers", [])
        if KUBERNETES_FINALIZER not in finalizers:
            finalizers.append(KUBERNETES_FINALIZER)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        for finalizer in (obj.get("spec") or {}).get("finalizers") or ():
            yield from _validate_finalizer(finalizer, root("spec", "finalizers"))

    def canonicalize(self, obj: Json) -> None:
        # Label again: a generated name is unknown while defaults are applied.
        _label(obj)

    def may_delete_during_update(self, obj: Json, old: Json) -> bool:
        return not (obj.get("spec") or {}).get("finalizers")


class NamespaceStatusStrategy(StatusSubresource, NamespaceStrategy):
    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        deleted, phase = is_deleting(obj), obj["status"].get("phase", "")
        if not deleted and phase != "Active":
            yield invalid(root("status", "Phase"), phase, "may only be 'Active' if `deletionTimestamp` is empty")
        if deleted and phase != "Terminating":
            reason = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            yield invalid(root("status", "Phase"), phase, reason)


class NamespaceFinalizeStrategy(NamespaceStrategy):
    """Strategy of the finalize subresource, the only way to change spec.finalizers."""

    kept_on_update = ("status",)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        for position, finalizer in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
            yield from _validate_finalizer(finalizer, root("spec", "finalizers").index(position))


def _label(obj: Json) -> None:
    metadata(obj).setdefault("labels", {})[NAME_LABEL] = name_of(obj)


def _validate_finalizer(name: str, path: Path) -> Errors:
    yield from qualified_name(name, path)
    yield from validate_kube_finalizer(name, path)


class NamespaceStorage(OneByOneView):
    """All verbs except deletecollection. A delete request sets the phase Terminating."""

    async def delete(self, ctx: RequestContext, name: str, *, options: DeleteOptions, validate: Validate) -> Deleted:
        while True:
            with map_storage_errors(_NAMESPACES, name):
                current = await self.registry.newest("", name)
                if current is None:
                    raise NotFound.of(_NAMESPACES, name)
                namespace = current.parse()
                if reason := failed_precondition(namespace, options.preconditions):
                    raise Conflict.of(_NAMESPACES, name_of(namespace), reason)
                if is_deleting(namespace):
                    if (namespace.get("spec") or {}).get("finalizers"):
                        return Deleted(current, immediately=False)
                    conditions = replace(options.preconditions, uid=uid_of(namespace))
                    options = replace(options, preconditions=conditions)
                    return await self.registry.delete(ctx, name_of(namespace), options=options, validate=validate)
                try:
                    await validate(current.parse())
                    metadata(namespace)["deletionTimestamp"] = now()
                    namespace.setdefault("status", {})["phase"] = "Terminating"
                    _set_finalizers(namespace, options)
                    marked = await self.registry.replace(current, namespace, dry_run=options.dry_run)
                    return Deleted(marked, immediately=False)
                except RevisionConflict:
                    continue


def _set_finalizers(namespace: Json, options: DeleteOptions) -> None:
    current = metadata(namespace).get("finalizers") or []
    finalizers = [finalizer for finalizer in current if finalizer not in (ORPHAN, FOREGROUND)]
    if _should_have(ORPHAN in current, options, orphan=True, policy="Orphan"):
        finalizers.append(ORPHAN)
    if _should_have(FOREGROUND in current, options, orphan=False, policy="Foreground"):
        finalizers.append(FOREGROUND)
    if finalizers:
        metadata(namespace)["finalizers"] = finalizers
    else:
        metadata(namespace).pop("finalizers", None)


def _should_have(present: bool, options: DeleteOptions, *, orphan: bool, policy: str) -> bool:
    if options.orphan_dependents is not None:
        return options.orphan_dependents is orphan
    if options.propagation_policy is not None:
        return options.propagation_policy == policy
    return present


def _fields(obj: Json) -> Fields:
    phase = (obj.get("status") or {}).get("phase") or ""
    return cluster_metadata_fields(obj) | {"status.phase": phase, "name": name_of(obj)}


NAMESPACES = Resource(
    names=Names("namespaces", kind="Namespace", short=["ns"]),
    strategy=NamespaceStrategy(),
    fields=_fields,
    indexed_fields=("status.phase",),
    returns_deleted_object=True,
    columns=[
        NAME,
        Column(
            "Status",
            lambda obj: (obj.get("status") or {}).get("phase") or "",
            description="The status of the namespace",
        ),
        AGE,
    ],
)
