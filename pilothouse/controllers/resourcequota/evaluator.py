"""Quota evaluators: quota resources consumed by objects of one API resource."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeAlias

from pilothouse.kinds.resources import ResourceList
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, items, name_of, part


class QuotaEvaluator(Protocol):
    @property
    def counts_only(self) -> bool:
        """Return whether usage is independent of the object's content."""

    def matching(self, names: Iterable[str]) -> list[str]:
        """Return the sorted subset of names that objects of this resource can consume."""

    def in_scope(self, scope: Json, obj: Json) -> bool: ...

    def usage(self, obj: Json) -> ResourceList: ...


ExtendedResources: TypeAlias = Callable[[], Mapping[str, str]]
"""Returns resource names by device class."""
Evaluators: TypeAlias = Callable[[GroupResource, ExtendedResources], QuotaEvaluator | None]
"""Returns the evaluator of a resource; None if quotas do not cover it."""


def extended_resources(device_classes: Iterable[Json]) -> dict[str, str]:
    named = (
        (name_of(device_class), part(device_class, "spec").get("extendedResourceName"))
        for device_class in device_classes
    )
    return {name: extended for name, extended in named if extended}


def hard(quota: Json) -> dict[str, str]:
    """Return the limits of the quota by name."""
    return part(quota, "spec", "hard")


def is_counted(quota: Json, evaluator: QuotaEvaluator, obj: Json) -> bool:
    """Return whether the object matches every scope of the quota."""
    spec = quota.get("spec") or {}
    scopes: list[Json] = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    scopes += items(spec, "scopeSelector", "matchExpressions")
    return all(evaluator.in_scope(scope, obj) for scope in scopes)


def usage_in(quota: Json, evaluator: QuotaEvaluator, obj: Json) -> ResourceList:
    """Return the object's usage of limited resources; empty if the object is out of scope."""
    if not is_counted(quota, evaluator, obj):
        return {}
    used, limited = evaluator.usage(obj), hard(quota)
    return {name: amount for name, amount in used.items() if name in limited}
