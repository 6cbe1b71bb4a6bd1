"""Evictions: deletes with the consent of the pod's disruption budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from pilothouse.apiserver.endpoints.decoding import DecodedObject
from pilothouse.apiserver.endpoints.options import check_delete_options
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.registry.finalizers_and_grace import check_preconditions
from pilothouse.apiserver.registry.operations import (
    RequestContext,
    Result,
    Validate,
    object_of,
    unchecked,
    unchecked_update,
)
from pilothouse.apiserver.registry.options import DeleteOptions, GetOptions, Preconditions, WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kinds.conditions import is_true
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import ENDED_PHASES, set_pod_condition
from pilothouse.kube.core.pods.binding import created
from pilothouse.kube.core.pods.disruption_budgets import still_being_processed
from pilothouse.kube.core.pods.strategy import PodStatusStrategy
from pilothouse.machinery.errors import BadRequest, Conflict, Invalid
from pilothouse.machinery.field import invalid, root
from pilothouse.machinery.gofmt import go_value
from pilothouse.machinery.names import GroupKind, GroupVersionKind
from pilothouse.machinery.objects import Json, name_of, resource_version_of
from pilothouse.machinery.status_error import StatusError

EVICTION = GroupVersionKind("policy", "v1", "Eviction")
_BETA = GroupVersionKind("policy", "v1beta1", "Eviction")

_POD = GroupKind("", "Pod")
_IGNORE_READ_ERRORS = "ignoreStoreReadErrorWithClusterBreakingPotential"
_ATTEMPTS = 20


class EvictionDecoder(TypedDecoder):
    """Decodes evictions of v1 and of v1beta1, which has the same fields."""

    def decode(self, serializer: Serializer, data: bytes, *, strict: bool) -> DecodedObject:
        decoded = super().decode(serializer, data, strict=strict)
        if decoded.kind != _BETA:
            return decoded
        obj = decoded.obj | {"apiVersion": EVICTION.api_version}
        return DecodedObject(obj, EVICTION, decoded.strict_errors)


class DisruptionBudgets(Protocol):
    async def of(self, pod: Json) -> list[Json]:
        """Return the budgets that select the pod."""

    async def spend(self, budget: Json, pod_name: str, *, dry_run: bool) -> None:
        """Count one disruption. Raises if no disruption is allowed."""


class EvictionStorage:
    """pods/NAME/eviction."""

    def __init__(self, registry: RegistryStore, budgets: DisruptionBudgets) -> None:
        self._pods = registry.with_strategy(PodStatusStrategy())
        self._budgets = budgets

    async def create_named(
        self, ctx: RequestContext, name: str, obj: Json, *, options: WriteOptions, validate: Validate
    ) -> Result:
        if name != name_of(obj):
            raise BadRequest("name in URL does not match name in Eviction object")
        raw = dict(obj.get("deleteOptions") or {})
        if raw.get(_IGNORE_READ_ERRORS):
            reason = "can not be set for pod eviction, try after removing the option"
            error = invalid(root("deleteOptions", _IGNORE_READ_ERRORS), True, reason)
            raise Invalid.of(EVICTION.group_kind, name, [error])
        dry_run = ["All"] if options.dry_run else []
        if dry_run and raw.get("dryRun") and raw["dryRun"] != dry_run:
            values = f"{go_value(dry_run)} and {go_value(raw['dryRun'])}"
            raise StatusError(f"Non-matching dry-run options in request and content: {values}")
        if dry_run:
            raw["dryRun"] = dry_run
        delete_options = DeleteOptions.of(raw)
        await validate(obj)
        pod = await self._evict_unguarded(ctx, name, delete_options)
        if pod is None:
            return created()
        budgets = await self._budgets.of(pod)
        if len(budgets) > 1:
            message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            return created() | {"status": "Failure", "message": message, "code": 500}
        budget = budgets[0] if budgets else None
        if budget is None:
            await self._delete(ctx, name_of(pod), delete_options)
        elif is_true(pod, "Ready") or not _lets_unhealthy_go(budget):
            await self._budgets.spend(budget, name_of(pod), dry_run=delete_options.dry_run)
            await self._delete(ctx, name_of(pod), delete_options)
        else:
            # An unhealthy pod does not count in the budget; delete the pod unless its status changes.
            try:
                await self._delete(ctx, name_of(pod), _unless_changed(delete_options, pod))
            except Conflict:
                if delete_options.preconditions.resource_version is not None:
                    raise
                raise still_being_processed(name_of(budget)) from None
        return created()

    async def _evict_unguarded(self, ctx: RequestContext, name: str, options: DeleteOptions) -> Json | None:
        """Delete a pod that is not running, regardless of budgets. Return a running pod unchanged."""
        for attempt in range(_ATTEMPTS):
            pod = (await self._pods.get(ctx, name, GetOptions())).parse()
            phase = (pod.get("status") or {}).get("phase")
            if not (phase in (*ENDED_PHASES, "Pending") or is_deleting(pod)):
                return pod
            own = _unless_changed(options, pod) if _may_still_start(pod) else options
            try:
                await self._delete(ctx, name, own)
            except Conflict:
                if options.preconditions.resource_version is not None or attempt == _ATTEMPTS - 1:
                    raise
                continue
            return None
        raise AssertionError("the last attempt returns or raises")

    async def _delete(self, ctx: RequestContext, name: str, options: DeleteOptions) -> None:
        check_delete_options(options.raw)
        if not options.dry_run:

            async def announced(stored: Json | None) -> Json:
                assert stored is not None, "only pods that exist are updated"
                conditions = options.preconditions
                check_preconditions(
                    stored, Preconditions(conditions.uid or None, conditions.resource_version or None), _POD
                )
                message = "Eviction API: evicting"
                set_pod_condition(stored, "DisruptionTarget", "True", reason="EvictionByEvictionAPI", message=message)
                return stored

            updated = await self._pods.update(ctx, name, unchecked_update(announced, WriteOptions()))
            version = resource_version_of(object_of(updated.result))
            if options.preconditions.resource_version is not None:
                # The new version is the result of our own status write.
                options = replace(options, preconditions=replace(options.preconditions, resource_version=version))
        # Admission has already run for the eviction.
        await self._pods.delete(ctx, name, options=options, validate=unchecked)


def _may_still_start(pod: Json) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ENDED_PHASES and not is_deleting(pod)


def _unless_changed(options: DeleteOptions, pod: Json) -> DeleteOptions:
    if options.preconditions.resource_version is not None:
        return options
    return replace(options, preconditions=replace(options.preconditions, resource_version=resource_version_of(pod)))


def _lets_unhealthy_go(budget: Json) -> bool:
    status = budget.get("status") or {}
    desired, current = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return current >= desired > 0
