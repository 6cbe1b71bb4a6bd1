"""Scopes of a ResourceQuota."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.kube.validation.resource_names import is_standard
from pilothouse.machinery.field import Errors, Path, invalid, required
from pilothouse.machinery.objects import Json, items, part
from pilothouse.machinery.validation.labels import UNKNOWN_OPERATOR

TERMINATING = "Terminating"
NOT_TERMINATING = "NotTerminating"
BEST_EFFORT = "BestEffort"
NOT_BEST_EFFORT = "NotBestEffort"
PRIORITY_CLASS = "PriorityClass"
CROSS_NAMESPACE_POD_AFFINITY = "CrossNamespacePodAffinity"
VOLUME_ATTRIBUTES_CLASS = "VolumeAttributesClass"

_COMPUTE = frozenset({"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_OF_PODS = _COMPUTE | {"pods"}
_COUNTED_BY: dict[str, frozenset[str]] = {
    TERMINATING: _OF_PODS,
    NOT_TERMINATING: _OF_PODS,
    NOT_BEST_EFFORT: _OF_PODS,
    PRIORITY_CLASS: _OF_PODS,
    CROSS_NAMESPACE_POD_AFFINITY: _OF_PODS,
    BEST_EFFORT: frozenset({"pods"}),
    VOLUME_ATTRIBUTES_CLASS: frozenset({"persistentvolumeclaims", "requests.storage"}),
}
"""Resources of each scope. An unknown scope causes one error only."""
_WITHOUT_VALUES = frozenset({TERMINATING, NOT_TERMINATING, BEST_EFFORT, NOT_BEST_EFFORT, CROSS_NAMESPACE_POD_AFFINITY})
_OPPOSITES = ({BEST_EFFORT, NOT_BEST_EFFORT}, {TERMINATING, NOT_TERMINATING})


def is_standard_for_quotas(name: str) -> bool:
    return is_standard(name) and name != "storage"


def validate_scopes(spec: Json, path: Path) -> Errors:
    scopes, at = items(spec, "scopes"), path.child("scopes")
    for scope in scopes:
        if scope not in _COUNTED_BY:
            yield invalid(at, scopes, "unsupported scope")
        for _ in _not_counted(scope, spec):
            yield invalid(at, scopes, "unsupported scope applied to resource")
    for pair in _OPPOSITES:
        if pair <= set(scopes):
            yield invalid(at, scopes, "conflicting scopes")


def validate_scope_selector(spec: Json, path: Path) -> Errors:
    selector = spec.get("scopeSelector")
    if selector is None:
        return
    at = path.child("scopeSelector", "matchExpressions")
    for expression in items(selector, "matchExpressions"):
        scope = expression.get("scopeName") or ""
        if scope not in _COUNTED_BY:
            yield invalid(at.child("scopeName"), scope, "unsupported scope")
        for _ in _not_counted(scope, spec):
            yield invalid(at, _shown(selector), "unsupported scope applied to resource")
        yield from _validate_expression(expression, scope, at)
    scopes = {expression.get("scopeName") for expression in items(selector, "matchExpressions")}
    for pair in _OPPOSITES:
        if pair <= scopes:
            yield invalid(at, spec.get("scopes"), "conflicting scopes")


def _not_counted(scope: str, spec: Json) -> Iterable[str]:
    counted = _COUNTED_BY.get(scope)
    for name in sorted(part(spec, "hard")):
        if counted is not None and is_standard_for_quotas(name) and name not in counted:
            yield name


def _validate_expression(expression: Json, scope: str, path: Path) -> Errors:
    operator, values = expression.get("operator") or "", items(expression, "values")
    if scope in _WITHOUT_VALUES and operator != "Exists":
        reason = (
            "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
            "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
            "ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        yield invalid(path.child("operator"), operator, reason)
    if operator in ("In", "NotIn"):
        if not values:
            reason = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield required(path.child("values"), reason)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            reason = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield invalid(path.child("values"), values, reason)
    else:
        yield invalid(path.child("operator"), operator, UNKNOWN_OPERATOR)


def _shown(selector: Json) -> Json:
    """Return a selector as upstream's messages print it."""
    expressions = [
        {
            "ScopeName": expression.get("scopeName") or "",
            "Operator": expression.get("operator") or "",
            "Values": expression.get("values"),
        }
        for expression in items(selector, "matchExpressions")
    ]
    return {"MatchExpressions": None if selector.get("matchExpressions") is None else expressions}
