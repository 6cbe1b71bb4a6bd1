"""PodGroups: pods that are scheduled together; and rules of pod group templates in Workloads.

Upstream declares the rules on fields: errors are in field order, and unchanged fields are not validated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.scheduling.priorityclasses import GROUP, HIGHEST_USER_PRIORITY
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource
from pilothouse.kube.validation import fields
from pilothouse.machinery.field import Errors, Path, duplicate, forbidden, invalid, required, root, too_many
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.conditions import validate_conditions
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

_SPEC = "io.k8s.api.scheduling.v1alpha2.PodGroupSpec"
_TEMPLATE = "podGroupTemplateRef"


def drop_disabled_group_fields(group: Json, old: Json | None) -> None:
    """Drop fields of disabled features, unless the stored object uses them."""
    for name, gate in _GATES.items():
        if not (old or {}).get(name) and not enabled(gate) and (old or {}).get(name) != 0:
            group.pop(name, None)


def validate_group(group: Json, path: Path) -> Errors:
    """Yield errors of a new group."""
    policy = part(group, "schedulingPolicy")
    scheduling_policy_path = path.child("schedulingPolicy")
    yield from exactly_one_of(policy, ("basic", "gang"), scheduling_policy_path)
    gang = policy.get("gang")
    if gang is not None:
        count, where = gang.get("minCount") or 0, scheduling_policy_path.child("gang", "minCount")
        yield from fields.in_limits(count, where, at_least=1) if count else iter([required(where)])
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
    rendered = ", ".join(f"`{name}`" for name in members)
    if len(given) > 1:
        yield invalid(path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {rendered}")
    elif not given:
        yield invalid(path, "", f"must specify one of: {rendered}")


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
    yield from rule(value, path) if value else fields.non_empty(value, path)


def _is_given(value: object) -> bool:
    return value is not None and value != "" and value != []


def _validate_constraints(constraints: Json, path: Path) -> Errors:
    topologies, where = items(constraints, "topology"), path.child("topology")
    if len(topologies) > MAX_TOPOLOGIES:
        yield too_many(where, len(topologies), MAX_TOPOLOGIES)
        return
    for position, topology in enumerate(topologies):
        yield from required_name(text(topology, "key"), where.index(position).child("key"), fields.qualified_name)


def _validate_claims(claims: Sequence[Json], path: Path) -> Errors:
    return keyed_list(claims, MAX_RESOURCE_CLAIMS, _validate_claim, path)


def _validate_claim(claim: Json, path: Path) -> Errors:
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    yield from exactly_one_of(claim, sources, path)
    yield from required_name(text(claim, "name"), path.child("name"), fields.dns_label)
    for name in sources:
        if claim.get(name) is not None:
            yield from fields.dns_subdomain(claim[name], path.child(name))


_CHECKS: dict[str, Check] = {
    "schedulingConstraints": _validate_constraints,
    "resourceClaims": _validate_claims,
    "disruptionMode": lambda mode, path: fields.one_of(mode, path, _DISRUPTION_MODES),
    "priorityClassName": fields.dns_subdomain,
    "priority": lambda value, path: fields.in_limits(
        value, path, at_least=_LOWEST_PRIORITY, at_most=HIGHEST_USER_PRIORITY
    ),
}


class PodGroupStrategy(SeparateStatusStrategy):
    def default(self, obj: Json) -> None:
        spec = part(obj, "spec")
        if spec.get("disruptionMode") is None:
            spec["disruptionMode"] = "Pod"

    def prepare_for_create(self, obj: Json) -> None:
        super().prepare_for_create(obj)
        drop_disabled_group_fields(part(obj, "spec"), None)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        super().prepare_for_update(obj, old)
        drop_disabled_group_fields(part(obj, "spec"), part(old, "spec"))

    def validate(self, obj: Json) -> Errors:
        spec, path = part(obj, "spec"), root("spec")
        yield from self.validate_metadata(obj)
        if spec.get(_TEMPLATE) is not None:
            yield from _validate_template_reference(spec[_TEMPLATE], path.child(_TEMPLATE))
        yield from validate_group(spec, path)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        spec, before, path = part(obj, "spec"), part(old, "spec"), root("spec")
        yield from self.validate_metadata_update(obj, old)
        if not semantically_equal(spec.get(_TEMPLATE), before.get(_TEMPLATE)):
            yield invalid(path.child(_TEMPLATE), None, FIELD_IMMUTABLE)
        yield from validate_group_update(spec, before, path)


class PodGroupStatusStrategy(StatusSubresource, PodGroupStrategy):
    reset_fields = ("metadata", "spec")
    resets_metadata = True

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        super().prepare_for_update(obj, old)
        if not items(old, "spec", "resourceClaims") and not enabled("DRAWorkloadResourceClaims"):
            part(obj, "status").pop("resourceClaimStatuses", None)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        status, path = part(obj, "status"), root("status")
        yield from validate_conditions(status.get("conditions"), path.child("conditions"))
        names = {text(claim, "name") for claim in items(obj, "spec", "resourceClaims")}
        statuses, where = items(status, "resourceClaimStatuses"), path.child("resourceClaimStatuses")
        for position, each in enumerate(statuses):
            if text(each, "name") not in names:
                reason = "must match the name of an entry in `spec.resourceClaims`"
                yield invalid(where.index(position).child("name"), text(each, "name"), reason)
        if not semantically_equal(statuses, items(old, "status", "resourceClaimStatuses")):
            yield from _validate_claim_statuses(statuses, where)


def _validate_template_reference(reference: Json, path: Path) -> Errors:
    yield from exactly_one_of(reference, ("workload",), path)
    workload, where = reference.get("workload"), path.child("workload")
    if workload is not None:
        yield from required_name(text(workload, "workloadName"), where.child("workloadName"), fields.dns_subdomain)
        name = text(workload, "podGroupTemplateName")
        yield from required_name(name, where.child("podGroupTemplateName"), fields.dns_label)


def _validate_claim_statuses(statuses: Sequence[Json], path: Path) -> Errors:
    def check(status: Json, where: Path) -> Errors:
        if (name := status.get("resourceClaimName")) is not None:
            yield from fields.dns_subdomain(name, where.child("resourceClaimName"))

    return keyed_list(statuses, MAX_RESOURCE_CLAIMS, check, path)


def _workload(obj: Json) -> str:
    reference = part(obj, "spec").get(_TEMPLATE)
    return "<none>" if reference is None else text(reference, "workload", "workloadName")


def _status(obj: Json) -> str:
    conditions = {text(condition, "type"): condition for condition in items(obj, "status", "conditions")}
    if (target := conditions.get("DisruptionTarget")) is not None:
        return text(target, "reason")
    scheduled = conditions.get("PodGroupScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if text(scheduled, "status") == "True" else "Unschedulable"


POD_GROUPS = Resource(
    names=Names("podgroups", kind="PodGroup"),
    strategy=PodGroupStrategy(),
    status=PodGroupStatusStrategy(),
    group=GROUP,
    version="v1alpha2",
    columns=[
        NAME,
        Column(
            "Policy",
            lambda obj: "Basic" if part(obj, "spec", "schedulingPolicy").get("gang") is None else "Gang",
            documented=(_SPEC, "schedulingPolicy"),
        ),
        Column("Workload", _workload, description="Name of the referenced Workload object"),
        Column("Status", _status, description="Status of the PodGroup"),
        AGE,
    ],
)
