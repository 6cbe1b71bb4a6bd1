"""ResourceQuota: runs last, because usage is not refunded when a later plugin rejects the write."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Protocol
from weakref import WeakValueDictionary

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation, refused
from pilothouse.apiserver.registry.compiled import CompiledObjects
from pilothouse.apiserver.registry.errors import MODIFIED, map_storage_errors
from pilothouse.apiserver.registry.own_access import OwnAccess, parse_all
from pilothouse.apiserver.storage.errors import KeyNotFound, RevisionConflict
from pilothouse.controllers.resourcequota.evaluator import extended_resources, is_counted
from pilothouse.kinds import resources
from pilothouse.kube.admission.plugin_parts import ObjectLookup
from pilothouse.kube.admission.quota.evaluators import AdmissionEvaluator
from pilothouse.kube.admission.quota.registry import RESOURCE_CLAIMS, evaluator_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Conflict
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, name_of, namespace_of, part, resource_version_of

_TRIES = 4
_NAMESPACES = GroupResource("", "namespaces")


class Quotas(Protocol):
    async def exist_in(self, namespace: str) -> bool:
        """Return whether the namespace has quotas, as far as the cache knows."""

    async def newest(self, namespace: str) -> list[Json]: ...

    async def charge(self, charge: Charge) -> bool:
        """Write the quota's new usage; return False when somebody else has written the quota in between."""


class ResourceQuota(Handler):
    """Charges one write at a time per namespace. Writes of other servers cause conflicts and a retry."""

    name = "ResourceQuota"
    operations = (Operation.CREATE, Operation.UPDATE)

    def __init__(self, quotas: Quotas, device_classes: ObjectLookup) -> None:
        self._quotas = quotas
        self._device_classes = device_classes
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def validate(self, attributes: Attributes) -> None:
        resource = attributes.resource.group_resource
        if not attributes.namespace or attributes.obj is None or resource == _NAMESPACES:
            return
        known: dict[str, str] = {}
        evaluator = evaluator_of(resource, lambda: known)
        if evaluator is None or not evaluator.handles(attributes):
            return
        if await self._quotas.exist_in(attributes.namespace):
            if resource == RESOURCE_CLAIMS:
                known.update(extended_resources(await self._device_classes.list()))
            await self._evaluate(attributes, evaluator)

    async def _evaluate(self, attributes: Attributes, evaluator: AdmissionEvaluator) -> None:
        lock = self._locks.setdefault(attributes.namespace, asyncio.Lock())
        async with lock:
            pending: Collection[str] | None = None
            for _ in range(_TRIES):
                quotas = await self._quotas.newest(attributes.namespace)
                # A quota charged in an earlier attempt is not charged again.
                due = [quota for quota in quotas if pending is None or name_of(quota) in pending]
                result = charges(due, attributes, evaluator)
                if attributes.dry_run:
                    return
                pending = [name_of(item.quota) for item in result if not await self._quotas.charge(item)]
                if not pending:
                    return
        raise Conflict.of(GroupResource("", "resourcequotas"), next(iter(pending or [""])), MODIFIED)


class StoredQuotas:
    def __init__(self, statuses: OwnAccess) -> None:
        """`statuses` writes the status of quotas."""
        self._statuses = statuses
        self._registry = registry = statuses.registry
        self._quotas = CompiledObjects(registry, namespace_of)
        self._of: Sequence[str] = ()
        self._namespaces: frozenset[str] = frozenset()

    async def exist_in(self, namespace: str) -> bool:
        with map_storage_errors(self._registry.resource.group_resource):
            quotas = await self._quotas.all()
        if quotas is not self._of:
            self._of, self._namespaces = quotas, frozenset(quotas)
        return namespace in self._namespaces

    async def newest(self, namespace: str) -> list[Json]:
        with map_storage_errors(self._registry.resource.group_resource):
            page = await self._registry.list_newest(namespace)
        return await parse_all(page.objects)

    async def charge(self, charge: Charge) -> bool:
        name = name_of(charge.quota)
        with map_storage_errors(self._registry.resource.group_resource, name):
            current = await self._registry.newest(namespace_of(charge.quota), name)
            if current is None:
                return True
            if str(current.revision) != resource_version_of(charge.quota):
                return False
            quota = current.parse()
            quota["status"]["used"] = resources.written(charge.used)
            try:
                await self._statuses.replace(current, quota)
            except (RevisionConflict, KeyNotFound):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Charge:
    """A quota and its new status.used."""

    quota: Json
    used: resources.ResourceList


def charges(quotas: Sequence[Json], attributes: Attributes, evaluator: AdmissionEvaluator) -> list[Charge]:
    """Return the charged quotas. Raise Forbidden if a quota would be exceeded."""
    assert attributes.obj is not None
    matching = [quota for quota in quotas if _matches(quota, evaluator, attributes.obj)]
    for quota in matching:
        names = evaluator.matching(part(quota, "status", "hard"))
        if missing := evaluator.missing(names, attributes.obj or {}):
            raise refused(attributes, f"failed quota: {name_of(quota)}: {missing}")
        if any(name not in part(quota, "status", "used") for name in names):
            reason = f"status unknown for quota: {name_of(quota)}, resources: {','.join(names)}"
            raise refused(attributes, reason)
    if not matching:
        return []
    usage = evaluator.usage(attributes.obj)
    if negative := sorted(name for name, amount in usage.items() if amount.sign < 0):
        raise refused(attributes, f"quota usage is negative for resource(s): {','.join(negative)}")
    result = (_charge(quota, _delta(quota, usage, evaluator, attributes), attributes) for quota in matching)
    return [charge for charge in result if charge is not None]


def _matches(quota: Json, evaluator: AdmissionEvaluator, obj: Json) -> bool:
    return bool(evaluator.matching(part(quota, "status", "hard"))) and is_counted(quota, evaluator, obj)


def _delta(
    quota: Json, usage: resources.ResourceList, evaluator: AdmissionEvaluator, attributes: Attributes
) -> resources.ResourceList:
    """Return the additional usage. An update of a counted object is charged for the increase only."""
    old = attributes.old
    if attributes.operation is not Operation.UPDATE or old is None or not resource_version_of(old):
        return resources.without_zeros(usage)
    counted = _matches(quota, evaluator, old)
    return resources.without_zeros(resources.increase(usage, evaluator.usage(old)) if counted else usage)


def _charge(quota: Json, delta: resources.ResourceList, attributes: Attributes) -> Charge | None:
    hard, used = (
        resources.read_amounts(part(quota, "status", "hard")),
        resources.read_amounts(part(quota, "status", "used")),
    )
    requested = resources.only(delta, hard)
    if not requested:
        return None
    total = resources.added(used, requested)
    exceeded = [name for name in requested if total[name] > hard[name]]
    if exceeded and attributes.subresource != "status":
        reason = (
            f"exceeded quota: {name_of(quota)}, requested: {resources.shown(resources.only(requested, exceeded))}, "
            f"used: {resources.shown(resources.only(used, exceeded))}, "
            f"limited: {resources.shown(resources.only(hard, exceeded))}"
        )
        raise refused(attributes, reason)
    return Charge(quota, total)
