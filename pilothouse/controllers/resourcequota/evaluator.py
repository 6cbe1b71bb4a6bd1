"""Quota evaluators: each knows which amounts the objects of a resource can use, and how much one of them uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeAlias

from pilothouse.kinds.resource_lists import ResourceList
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, name_of


class QuotaEvaluator(Protocol):
    @property
    def counts_only(self) -> bool:
        """Whether every object of the resource uses the same, whatever it says."""

    def matching(self, names: Iterable[str]) -> list[str]:
        """Return those of the names that objects of this resource can use, sorted."""

    def in_scope(self, scope: Json, obj: Json) -> bool: ...

    def usage(self, obj: Json) -> ResourceList: ...


ExtendedResources: TypeAlias = Callable[[], Mapping[str, str]]
"""Answers by which names pods ask for devices, by their device classes."""
Evaluators: TypeAlias = Callable[[GroupResource, ExtendedResources], QuotaEvaluator | None]
"""The evaluator of a resource; None for those that no quota counts."""


def extended_resources(device_classes: Iterable[Json]) -> dict[str, str]:
    named = ((name_of(each), (each.get("spec") or {}).get("extendedResourceName")) for each in device_classes)
    return {name: extended for name, extended in named if extended}


def hard(quota: Json) -> dict[str, str]:
    """Return the limits of the quota by name."""
    return (quota.get("spec") or {}).get("hard") or {}


def is_counted(quota: Json, evaluator: QuotaEvaluator, obj: Json) -> bool:
    """Whether an object is in every scope of a quota."""
    spec = quota.get("spec") or {}
    scopes: list[Json] = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    scopes += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(evaluator.in_scope(scope, obj) for scope in scopes)


def usage_in(quota: Json, evaluator: QuotaEvaluator, obj: Json) -> ResourceList:
    """Return how much one object uses of each resource that the quota limits; empty for one that it does not count."""
    if not is_counted(quota, evaluator, obj):
        return {}
    used, limited = evaluator.usage(obj), hard(quota)
    return {name: amount for name, amount in used.items() if name in limited}
