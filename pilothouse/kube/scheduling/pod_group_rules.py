"""Rules of PodGroups and of pod group templates in Workloads.

Upstream declares the rules on fields: errors are in field order, and unchanged fields are not validated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.scheduling.priorityclasses import HIGHEST_USER_PRIORITY
from pilothouse.kube.validation.fields import (
    dns_label,
    dns_subdomain,
    in_limits,
    non_empty,
    one_of,
    qualified_name,
)
from pilothouse.machinery.field import Errors, Path, duplicate, forbidden, invalid, required, too_many
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal

MAX_TOPOLOGIES = 1
MAX_RESOURCE_CLAIMS = 4

Check: TypeAlias = Callable[[Any, Path], Errors]

_DISRUPTION_MODES = ("Pod", "PodGroup")
_LOWEST_PRIORITY = -(1 << 31)
_GATES = {
    "schedulingConstraints": "TopologyAwareWorkloadScheduling",
    "resourceClaims": "DRAWorkloadResourceClaims",
    "disruptionMode": "WorkloadAwarePreemption",
    "priorityClassName": "WorkloadAwarePreemption",
    "priority": "WorkloadAwarePreemption",
}
_MUST_BE_FORBIDDEN_WHEN_OFF = _GATES.keys() - {"resourceClaims"}


def drop_disabled_group_fields(group: Json, old: Json | None) -> None:
    """Drop fields of disabled features, unless the stored object uses them."""
    for name, gate in _GATES.items():
        if not (old or {}).get(name) and not enabled(gate) and (old or {}).get(name) != 0:
            group.pop(name, None)


def validate_group(group: Json, path: Path) -> Errors:
    """Yield errors of a new group."""
    yield from _validate_policy(part(group, "schedulingPolicy"), path.child("schedulingPolicy"))
    for name, check in _CHECKS.items():
        if _is_given(group.get(name)):
            yield from check(group[name], path.child(name))


def validate_group_update(group: Json, old: Json, path: Path) -> Errors:
    """Yield errors of a changed group; all fields are immutable."""
    for name in ("schedulingPolicy", *_CHECKS):
        if semantically_equal(group.get(name), old.get(name)):
            continue
        if name in _MUST_BE_FORBIDDEN_WHEN_OFF and not enabled(_GATES[name]):
            if _is_given(group.get(name)):
                yield forbidden(path.child(name), "")
        else:
            yield invalid(path.child(name), None, FIELD_IMMUTABLE)


def exactly_one_of(value: Json, members: Sequence[str], path: Path) -> Errors:
    given = [name for name in members if value.get(name) is not None]
    shown = ", ".join(f"`{name}`" for name in members)
    if len(given) > 1:
        yield invalid(path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {shown}")
    elif not given:
        yield invalid(path, "", f"must specify one of: {shown}")


def keyed_list(values: Sequence[Json], most: int, check: Check, path: Path) -> Errors:
    """Validate entries with unique names."""
    if len(values) > most:
        yield too_many(path, len(values), most)
        return
    names = [text(value, "name") for value in values]
    for position, value in enumerate(values):
        if names[position] in names[:position]:
            yield duplicate(path.index(position), value)
    for position, value in enumerate(values):
        yield from check(value, path.index(position))


def required_name(value: str, path: Path, rule: Check) -> Errors:
    yield from rule(value, path) if value else non_empty(value, path)


def _is_given(value: object) -> bool:
    return value is not None and value != "" and value != []


def _validate_policy(policy: Json, path: Path) -> Errors:
    yield from exactly_one_of(policy, ("basic", "gang"), path)
    gang = policy.get("gang")
    if gang is not None:
        count, where = gang.get("minCount") or 0, path.child("gang", "minCount")
        yield from in_limits(count, where, at_least=1) if count else iter([required(where)])


def _validate_constraints(constraints: Json, path: Path) -> Errors:
    topologies, where = items(constraints, "topology"), path.child("topology")
    if len(topologies) > MAX_TOPOLOGIES:
        yield too_many(where, len(topologies), MAX_TOPOLOGIES)
        return
    for position, topology in enumerate(topologies):
        yield from required_name(text(topology, "key"), where.index(position).child("key"), qualified_name)


def _validate_claims(claims: Sequence[Json], path: Path) -> Errors:
    return keyed_list(claims, MAX_RESOURCE_CLAIMS, _validate_claim, path)


def _validate_claim(claim: Json, path: Path) -> Errors:
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    yield from exactly_one_of(claim, sources, path)
    yield from required_name(text(claim, "name"), path.child("name"), dns_label)
    for name in sources:
        if claim.get(name) is not None:
            yield from dns_subdomain(claim[name], path.child(name))


_CHECKS: dict[str, Check] = {
    "schedulingConstraints": _validate_constraints,
    "resourceClaims": _validate_claims,
    "disruptionMode": lambda mode, path: one_of(mode, path, _DISRUPTION_MODES),
    "priorityClassName": dns_subdomain,
    "priority": lambda value, path: in_limits(value, path, at_least=_LOWEST_PRIORITY, at_most=HIGHEST_USER_PRIORITY),
}
