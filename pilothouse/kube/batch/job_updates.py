"""Validation of job updates: few mutable fields, more for suspended jobs without pods."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.batch.job_policies import shown_failure_policy, shown_success_policy
from pilothouse.kube.batch.job_status import is_condition_true
from pilothouse.kube.batch.job_validation import INDEXED, validate_job_spec
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.kube.core.pods.internal_form import internal_pod_spec
from pilothouse.kube.validation.selectors import validate_selector_unchanged
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.objects import Json, items, number, part
from pilothouse.machinery.schema.printing import object_meta_in_messages
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE


@dataclass(frozen=True, slots=True)
class _Fixed:
    """An immutable field and its form in messages."""

    name: str
    new: Any
    old: Any
    shown: Any

    def validate(self, path: Path) -> Errors:
        if not same_spec(self.new, self.old):
            yield invalid(path.child(self.name), self.shown, FIELD_IMMUTABLE)


def validate_job_update(job: Json, old: Json, path: Path) -> Errors:
    spec, before = job["spec"], old["spec"]
    yield from validate_job_spec(spec, path, before)
    # Indexed jobs are scaled by changing completions and parallelism together.
    completions = spec.get("completions")
    if spec.get("completionMode") != INDEXED:
        yield from _Fixed("completions", completions, before.get("completions"), completions).validate(path)
    elif completions not in (None, before.get("completions"), spec.get("parallelism")):
        reason = "can only be modified in tandem with spec.parallelism"
        yield invalid(path.child("completions"), completions, reason)
    yield from validate_selector_unchanged(spec.get("selector"), before.get("selector"), path.child("selector"))
    yield from _validate_template(job, old, path)
    rendered = {
        "completionMode": spec.get("completionMode"),
        "podFailurePolicy": shown_failure_policy(spec.get("podFailurePolicy")),
        "backoffLimitPerIndex": spec.get("backoffLimitPerIndex"),
        "managedBy": spec.get("managedBy"),
        "successPolicy": shown_success_policy(spec.get("successPolicy")),
    }
    for name, value in rendered.items():
        yield from _Fixed(name, spec.get(name), before.get(name), value).validate(path)


def _validate_template(job: Json, old: Json, path: Path) -> Errors:
    template, before = job["spec"]["template"], deepcopy(old["spec"]["template"])
    status = part(old, "status")
    # The template may change while the job is suspended, without pods, and not started or reported as suspended.
    idle = not status.get("startTime") or is_condition_true(old, "Suspended")
    suspended = bool(old["spec"].get("suspend"))
    may_change = suspended and idle and number(status, "active") == 0
    placed = enabled("MutableSchedulingDirectivesForSuspendedJobs")
    scheduling = may_change if placed else suspended and not status.get("startTime")
    resources = may_change and enabled("MutablePodResourcesForSuspendedJobs")
    if scheduling:
        _accept_node_affinity(before["spec"], template["spec"])
        for name in ("nodeSelector", "tolerations", "schedulingGates"):
            before["spec"][name] = template["spec"].get(name)
        for name in ("annotations", "labels"):
            before.setdefault("metadata", {})[name] = part(template, "metadata").get(name)
    if not resources:
        yield from _Fixed("template", template, before, _shown_template(template)).validate(path)
        return
    _accept_resources(before["spec"], template["spec"])
    shown = internal_pod_spec(template["spec"])
    yield from _Fixed("template.spec", template["spec"], before["spec"], shown).validate(path)


def _accept_node_affinity(before: Json, spec: Json) -> None:
    affinity, old = spec.get("affinity"), before.get("affinity")
    if affinity is None and old is not None:
        old.pop("nodeAffinity", None)
        before["affinity"] = old or None
    elif affinity is not None:
        before["affinity"] = (old or {}) | {"nodeAffinity": affinity.get("nodeAffinity")}


def _accept_resources(before: Json, spec: Json) -> None:
    for kind in ("containers", "initContainers"):
        old, new = items(before, kind), items(spec, kind)
        if len(old) != len(new):
            continue
        for container, updated in zip(old, new, strict=True):
            if container.get("name") == updated.get("name"):
                container["resources"] = updated.get("resources")


def _shown_template(template: Json) -> Json:
    """Return the template as upstream's messages print it: metadata fields beside the spec."""
    meta = object_meta_in_messages(template.get("metadata") or {})
    return meta | {"Spec": internal_pod_spec(template["spec"])}
