"""Charging of a write to the quotas of its namespace."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.refusals import refused
from pilothouse.controllers.resourcequota.evaluator import is_counted
from pilothouse.kinds.resource_lists import ResourceList, added, increase, only, read_amounts, shown, without_zeros
from pilothouse.kube.admission.quota.evaluators import AdmissionEvaluator
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, part, resource_version_of


@dataclass(frozen=True, slots=True)
class Charge:
    """A quota and its new status.used."""

    quota: Json
    used: ResourceList


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


def _delta(quota: Json, usage: ResourceList, evaluator: AdmissionEvaluator, attributes: Attributes) -> ResourceList:
    """Return the additional usage. An update of a counted object is charged for the increase only."""
    old = attributes.old
    if attributes.operation is not Operation.UPDATE or old is None or not resource_version_of(old):
        return without_zeros(usage)
    counted = _matches(quota, evaluator, old)
    return without_zeros(increase(usage, evaluator.usage(old)) if counted else usage)


def _charge(quota: Json, delta: ResourceList, attributes: Attributes) -> Charge | None:
    hard, used = read_amounts(part(quota, "status", "hard")), read_amounts(part(quota, "status", "used"))
    requested = only(delta, hard)
    if not requested:
        return None
    total = added(used, requested)
    exceeded = [name for name in requested if total[name] > hard[name]]
    if exceeded and attributes.subresource != "status":
        reason = (
            f"exceeded quota: {name_of(quota)}, requested: {shown(only(requested, exceeded))}, "
            f"used: {shown(only(used, exceeded))}, limited: {shown(only(hard, exceeded))}"
        )
        raise refused(attributes, reason)
    return Charge(quota, total)
