"""Validation of a daemon set's spec and status."""

from __future__ import annotations

from pilothouse.kube.pod_templates import validate_template
from pilothouse.kube.validation.fields import nonnegative
from pilothouse.kube.validation.int_or_percent import (
    int_or_percent_value,
    validate_not_more_than_100_percent,
    validate_positive_int_or_percent,
)
from pilothouse.kube.validation.label_selectors import is_empty, selector_of, shown_selector
from pilothouse.kube.validation.replica_counts import validate_counts
from pilothouse.kube.validation.replicated_templates import validate_labels_match, validate_runs_forever
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required
from pilothouse.machinery.objects import Json, number
from pilothouse.machinery.validation.labels import LabelSelectorRules, has_invalid_value, validate_label_selector

_COUNTS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


def validate_daemon_set_spec(spec: Json, path: Path, old: Json | None = None) -> Errors:
    template = spec["template"]
    label_selector = spec.get("selector")
    rules = LabelSelectorRules(allow_invalid_values=has_invalid_value((old or {}).get("selector")))
    yield from validate_label_selector(label_selector, path.child("selector"), rules)
    if (selector := selector_of(label_selector)) is not None:
        yield from validate_labels_match(spec["template"], selector, path.child("template"))
    if label_selector is not None and is_empty(label_selector):
        why = "empty selector is invalid for daemonset"
        yield invalid(path.child("selector"), shown_selector(label_selector), why)
    yield from validate_template(template, path.child("template"), old and old["template"])
    yield from validate_runs_forever(template, path.child("template"), "DaemonSet")
    yield from nonnegative(number(spec, "minReadySeconds"), path.child("minReadySeconds"))
    yield from _validate_strategy(spec["updateStrategy"], path.child("updateStrategy"))
    yield from nonnegative(number(spec, "revisionHistoryLimit"), path.child("revisionHistoryLimit"))


def validate_daemon_set_status(status: Json, path: Path) -> Errors:
    return validate_counts(status, path, *_COUNTS)


def _validate_strategy(strategy: Json, path: Path) -> Errors:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "RollingUpdate":
        yield from _validate_rolling_update(rolling or {}, path.child("rollingUpdate"))
    elif kind != "OnDelete":
        yield not_supported(path, _shown(strategy), ("RollingUpdate", "OnDelete"))


def _validate_rolling_update(rolling: Json, path: Path) -> Errors:
    """Either pods go before new ones come, or the other way round."""
    limits = {name: rolling.get(name, 0) for name in ("maxUnavailable", "maxSurge")}
    for name, limit in limits.items():
        yield from validate_positive_int_or_percent(limit, path.child(name))
    for name, limit in limits.items():
        yield from validate_not_more_than_100_percent(limit, path.child(name))
    unavailable, surge = (int_or_percent_value(limit) for limit in limits.values())
    if unavailable and surge:
        why = "may not be set when maxUnavailable is non-zero"
        yield invalid(path.child("maxSurge"), limits["maxSurge"], why)
    elif not unavailable and not surge:
        yield required(path.child("maxUnavailable"), "cannot be 0 when maxSurge is 0")


def _shown(strategy: Json) -> Json:
    """The strategy as upstream's server prints it."""
    rolling = strategy.get("rollingUpdate")
    shown = rolling and {
        "MaxUnavailable": rolling.get("maxUnavailable", 0),
        "MaxSurge": rolling.get("maxSurge", 0),
    }
    return {"Type": strategy.get("type") or "", "RollingUpdate": shown}
