"""Topology spread constraints: how evenly pods stand across zones, nodes and the like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pilothouse.kube.core.pods.validation.affinity import (
    KEY_IS_SELECTED_TWICE,
    KEYS_WITHOUT_SELECTOR,
    validate_label_keys,
)
from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.validation.fields import one_of, positive
from pilothouse.machinery.field import Errors, Path, duplicate, forbidden, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.labels import validate_label_name, validate_label_selector

_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_NODE_POLICIES = ("Honor", "Ignore")


def validate_topology_spread(constraints: Sequence[Json], path: Path, options: PodValidationOptions) -> Errors:
    following = Counter(map(_identity, constraints))
    for position, constraint in enumerate(constraints):
        at, selector = path.index(position), constraint.get("labelSelector")
        yield from positive(constraint.get("maxSkew") or 0, at.child("maxSkew"))
        following[_identity(constraint)] -= 1
        yield from _validate_identity(constraint, following, at)
        yield from _validate_min_domains(constraint, at.child("minDomains"))
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) is not None:
                yield from one_of(constraint[name], at.child(name), _NODE_POLICIES)
        keys = constraint.get("matchLabelKeys") or ()
        if options.allow_legacy_match_label_keys:
            yield from _validate_legacy_label_keys(keys, selector, at.child("matchLabelKeys"))
        else:
            yield from validate_label_keys(at, selector, match=keys)
        if not options.allow_invalid_topology_spread_selector:
            yield from validate_label_selector(selector, at.child("labelSelector"))


def _identity(constraint: Json) -> tuple[str, str]:
    """A constraint is known by its key and its action together."""
    return constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""


def _validate_identity(constraint: Json, following: Counter[tuple[str, str]], path: Path) -> Errors:
    """`following` counts the constraints behind this one."""
    key, action = _identity(constraint)
    if not key:
        yield required(path.child("topologyKey"), "can not be empty")
    yield from one_of(action, path.child("whenUnsatisfiable"), _ACTIONS)
    if following[key, action]:
        yield duplicate(path.child("{topologyKey, whenUnsatisfiable}"), f"{{{key}, {action}}}")


def _validate_min_domains(constraint: Json, path: Path) -> Errors:
    domains, action = constraint.get("minDomains"), constraint.get("whenUnsatisfiable") or ""
    if domains is None:
        return
    yield from positive(domains, path)
    if action != "DoNotSchedule":
        why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid(path, domains, why)


def _validate_legacy_label_keys(keys: Sequence[str], selector: Json | None, path: Path) -> Errors:
    """The rule of old for pods that were stored under it: the keys are not in the selector."""
    if keys and selector is None:
        yield forbidden(path, KEYS_WITHOUT_SELECTOR)
    expressions = (selector or {}).get("matchExpressions") or ()
    selected = {*((selector or {}).get("matchLabels") or ()), *(each.get("key") for each in expressions)}
    for position, key in enumerate(keys):
        yield from validate_label_name(key, path.index(position))
        if key in selected:
            yield invalid(path.index(position), key, KEY_IS_SELECTED_TWICE)
