"""Validation of a deployment's spec and status."""

from __future__ import annotations

from pilothouse.kube.apps.rollback import validate_rollback
from pilothouse.kube.apps.selectors import validate_required_selector
from pilothouse.kube.validation.fields import nonnegative
from pilothouse.kube.validation.int_or_percent import (
    int_or_percent_value,
    validate_not_more_than_100_percent,
    validate_positive_int_or_percent,
)
from pilothouse.kube.validation.label_selectors import selector_of, shown_selector
from pilothouse.kube.validation.replica_counts import validate_counts, validate_parts_of_replicas
from pilothouse.kube.validation.replicated_templates import validate_replicated_template
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported
from pilothouse.machinery.objects import Json, number, part

_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")


def validate_deployment_spec(obj: Json, path: Path, old: Json | None = None) -> Errors:
    spec = obj["spec"]
    yield from nonnegative(number(spec, "replicas"), path.child("replicas"))
    yield from validate_selector_and_template(spec, path, old["spec"] if old else None)
    yield from _validate_strategy(spec["strategy"], path.child("strategy"))
    yield from nonnegative(number(spec, "minReadySeconds"), path.child("minReadySeconds"))
    yield from nonnegative(number(spec, "revisionHistoryLimit"), path.child("revisionHistoryLimit"))
    yield from validate_rollback(obj, path.child("rollback"))
    yield from _validate_deadline(spec, path.child("progressDeadlineSeconds"))


def validate_selector_and_template(spec: Json, path: Path, old: Json | None) -> Errors:
    """For deployments and replica sets, whose messages upstream words alike: it calls both a deployment."""
    yield from validate_required_selector(spec.get("selector"), path.child("selector"), "deployment")
    selector = selector_of(spec.get("selector"))
    if selector is None:
        yield invalid(path.child("selector"), shown_selector(spec["selector"]), "invalid label selector")
        return
    yield from validate_replicated_template(
        spec["template"], selector, path.child("template"), owner="ReplicaSet", old=part(old or {}, "template") or None
    )


def validate_deployment_status(status: Json, path: Path) -> Errors:
    counts = ("observedGeneration", *_COUNTS, "terminatingReplicas", "collisionCount")
    yield from validate_counts(status, path, *counts)
    yield from validate_parts_of_replicas(status, path, ("updatedReplicas", "readyReplicas", "availableReplicas"))


def _validate_strategy(strategy: Json, path: Path) -> Errors:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden(path.child("rollingUpdate"), why)
    elif kind == "RollingUpdate":
        yield from _validate_rolling_update(rolling or {}, path.child("rollingUpdate"))
    else:
        yield not_supported(path, _shown(strategy), ("Recreate", "RollingUpdate"))


def _validate_rolling_update(rolling: Json, path: Path) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from validate_positive_int_or_percent(unavailable, path.child("maxUnavailable"))
    yield from validate_positive_int_or_percent(surge, path.child("maxSurge"))
    if int_or_percent_value(unavailable) == 0 and int_or_percent_value(surge) == 0:
        yield invalid(path.child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0")
    yield from validate_not_more_than_100_percent(unavailable, path.child("maxUnavailable"))


def _validate_deadline(spec: Json, path: Path) -> Errors:
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is None:
        return
    yield from nonnegative(deadline, path)
    if deadline <= number(spec, "minReadySeconds"):
        yield invalid(path, deadline, "must be greater than minReadySeconds")


def _shown(strategy: Json) -> Json:
    """The strategy as upstream's server prints it."""
    rolling = strategy.get("rollingUpdate")
    shown = None
    if rolling is not None:
        shown = {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}
    return {"Type": strategy.get("type") or "", "RollingUpdate": shown}
