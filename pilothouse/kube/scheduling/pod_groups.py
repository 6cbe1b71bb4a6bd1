"""PodGroups: pods that are scheduled together."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.scheduling.pod_group_rules import (
    MAX_RESOURCE_CLAIMS,
    drop_disabled_group_fields,
    exactly_one_of,
    keyed_list,
    required_name,
    validate_group,
    validate_group_update,
)
from pilothouse.kube.scheduling.priorityclasses import GROUP
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource
from pilothouse.kube.validation.fields import dns_label, dns_subdomain
from pilothouse.machinery.field import Errors, Path, invalid, root
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.conditions import validate_conditions
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal

_SPEC = "io.k8s.api.scheduling.v1alpha2.PodGroupSpec"
_TEMPLATE = "podGroupTemplateRef"


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
        yield from required_name(text(workload, "workloadName"), where.child("workloadName"), dns_subdomain)
        name = text(workload, "podGroupTemplateName")
        yield from required_name(name, where.child("podGroupTemplateName"), dns_label)


def _validate_claim_statuses(statuses: Sequence[Json], path: Path) -> Errors:
    def check(status: Json, where: Path) -> Errors:
        if (name := status.get("resourceClaimName")) is not None:
            yield from dns_subdomain(name, where.child("resourceClaimName"))

    return keyed_list(statuses, MAX_RESOURCE_CLAIMS, check, path)


def _policy(obj: Json) -> str:
    return "Basic" if part(obj, "spec", "schedulingPolicy").get("gang") is None else "Gang"


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
        Column("Policy", _policy, documented=(_SPEC, "schedulingPolicy")),
        Column("Workload", _workload, description="Name of the referenced Workload object"),
        Column("Status", _status, description="Status of the PodGroup"),
        AGE,
    ],
)
