"""What quotas know of a resource: which amounts its objects can use, and how much one of them uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.resource_list import ResourceList


class QuotaEvaluator(Protocol):
    @property
    def counts_only(self) -> bool:
        """Whether every object of the resource uses the same, whatever it says."""

    def matching(self, names: Iterable[str]) -> list[str]:
        """Those of the names that objects of this resource can use, sorted."""

    def in_scope(self, scope: Json, obj: Json) -> bool: ...

    def usage(self, obj: Json) -> ResourceList: ...


Evaluators: TypeAlias = Callable[[GroupResource], QuotaEvaluator | None]
"""The evaluator of a resource; None for those that no quota counts."""


def hard(quota: Json) -> dict[str, str]:
    """What the quota limits."""
    return (quota.get("spec") or {}).get("hard") or {}


def is_counted(quota: Json, evaluator: QuotaEvaluator, obj: Json) -> bool:
    """Whether an object is in every scope of a quota."""
    spec = quota.get("spec") or {}
    scopes: list[Json] = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    scopes += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(evaluator.in_scope(scope, obj) for scope in scopes)


def usage_in(quota: Json, evaluator: QuotaEvaluator, obj: Json) -> ResourceList:
    """What one object uses of what the quota limits."""
    if not is_counted(quota, evaluator, obj):
        return {}
    used, limited = evaluator.usage(obj), hard(quota)
    return {name: amount for name, amount in used.items() if name in limited}
