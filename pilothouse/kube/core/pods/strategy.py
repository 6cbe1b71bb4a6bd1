"""Strategies of pods and of the subresources with a whole pod.

matchLabelKeys: the values of a new pod's labels are merged into the selectors of affinity and topology spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import ClassVar

from pilothouse.apiserver.registry.metadata import begin_generation, carry_over, reset_object_meta_for_status
from pilothouse.apiserver.server.features import enabled
from pilothouse.kinds.pods import has_ended, set_pod_condition
from pilothouse.kube.core.pods.defaults.pod import default_pod
from pilothouse.kube.core.pods.defaults.resources import (
    default_pod_level_resources,
    defaults_pod_level_resources_late,
)
from pilothouse.kube.core.pods.disabled_fields import drop_disabled_fields, drop_disabled_status_fields
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.kube.core.pods.qos import compute_qos_class
from pilothouse.kube.core.pods.resize import keep_all_but_resources, not_resizable, validate_resize
from pilothouse.kube.core.pods.status import validate_status_update
from pilothouse.kube.core.pods.update import (
    is_static,
    static_pod_error,
    validate_ephemeral_containers_update,
    validate_pod_update,
)
from pilothouse.kube.core.pods.validation.pod import validate_new_pod
from pilothouse.kube.core.pods.validation.profiles import apparmor_warnings, fill_in_apparmor_fields
from pilothouse.kube.core.pods.validation.scheduling import PREFERRED, REQUIRED
from pilothouse.kube.core.pods.warnings.pod import pod_warnings, status_warnings
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery import version_rules
from pilothouse.machinery.field import Errors
from pilothouse.machinery.objects import Json, labels_of, metadata

_DEVICE_FIELDS = ("resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses")


class PodStrategy(KubeStrategy):
    reset_fields: ClassVar[tuple[str, ...]] = ("status",)

    def default(self, obj: Json) -> None:
        default_pod(obj)

    def prepare_for_create(self, obj: Json) -> None:
        metadata(obj)["generation"] = 1
        obj["status"] = {"phase": "Pending"}
        drop_disabled_fields(obj["spec"])
        if defaults_pod_level_resources_late():
            default_pod_level_resources(obj["spec"])
        obj["status"]["qosClass"] = compute_qos_class(obj["spec"])
        if obj["spec"].get("schedulingGates"):
            message = "Scheduling is blocked due to non-empty scheduling gates"
            set_pod_condition(obj, "PodScheduled", "False", reason="SchedulingGated", message=message)
        select_own_label_values(obj)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        obj["status"] = old.get("status") or {}
        _keep_pod_level_resources(obj, old)
        drop_disabled_fields(obj["spec"], old["spec"])
        _count_generation(obj, old)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_new_pod(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from self.validate_metadata(obj)
        yield from validate_pod_update(obj, old)

    def warnings_of_preparation(self, obj: Json) -> Iterable[str]:
        return apparmor_warnings(obj)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return pod_warnings(obj)

    def canonicalize(self, obj: Json) -> None:
        # After the warnings: warnings distinguish the client's fields from defaults.
        fill_in_apparmor_fields(obj)

    def grace_period(self, obj: Json, requested: int | None) -> int | None:
        """Return 0 for a pod that is unscheduled or has ended."""
        spec = obj.get("spec") or {}
        if not spec.get("nodeName") or has_ended(obj):
            return 0
        period = (spec.get("terminationGracePeriodSeconds") or 0) if requested is None else requested
        return 1 if period < 0 else period


class PodStatusStrategy(PodStrategy):
    reset_fields: ClassVar[tuple[str, ...]] = ("spec", "metadata.deletionTimestamp", "metadata.ownerReferences")

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        stored, status = old.get("status") or {}, obj.setdefault("status", {})
        carry_over(obj, old, "spec")
        metadata(obj).pop("deletionTimestamp", None)
        carry_over(metadata(obj), metadata(old), "ownerReferences")
        if not status.get("qosClass") and stored.get("qosClass"):
            status["qosClass"] = stored["qosClass"]
        if not status.get("observedGeneration") and stored.get("observedGeneration"):
            status["observedGeneration"] = stored["observedGeneration"]
        observed: dict[str, list[int]] = {}
        for condition in stored.get("conditions") or ():
            observed.setdefault(condition.get("type") or "", []).append(condition.get("observedGeneration") or 0)
        for condition in status.get("conditions") or ():
            before = observed.get(condition.get("type") or "")
            generation = before.pop(0) if before else 0
            if not condition.get("observedGeneration") and generation:
                condition["observedGeneration"] = generation
        if version_rules.holds("DevicesOfPodStatuses"):
            for name in _DEVICE_FIELDS:
                if status.get(name) is None:
                    carry_over(status, stored, name)
        drop_disabled_status_fields(status, stored)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from validate_status_update(obj, old)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return status_warnings(obj)


class PodEphemeralContainersStrategy(PodStrategy):
    reset_fields: ClassVar[tuple[str, ...]] = ()

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        added = obj["spec"].get("ephemeralContainers")
        obj["spec"] = {name: value for name, value in old["spec"].items() if name != "ephemeralContainers"}
        if added:
            obj["spec"]["ephemeralContainers"] = added
        obj["status"] = old.get("status") or {}
        reset_object_meta_for_status(obj, old)
        drop_disabled_fields(obj["spec"], old["spec"])
        _count_generation(obj, old)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        if is_static(old):
            yield from static_pod_error()
            return
        yield from self.validate_metadata_update(obj, old)
        yield from self.validate_metadata(obj)
        yield from validate_ephemeral_containers_update(obj, old)


class PodResizeStrategy(PodStrategy):
    reset_fields: ClassVar[tuple[str, ...]] = ()

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        if keep_all_but_resources(obj, old):
            reset_object_meta_for_status(obj, old)
        _keep_pod_level_resources(obj, old)
        if defaults_pod_level_resources_late():
            default_pod_level_resources(obj["spec"])
        drop_disabled_fields(obj["spec"], old["spec"])
        _count_generation(obj, old)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        refusal = not_resizable(old)
        if refusal is not None:
            yield refusal
            return
        yield from self.validate_metadata_update(obj, old)
        yield from self.validate_metadata(obj)
        yield from validate_resize(obj, old)


def _keep_pod_level_resources(obj: Json, old: Json) -> None:
    """Keep pod-level resources that an older client has dropped."""
    kept = old["spec"].get("resources")
    if kept is not None and obj["spec"].get("resources") is None and defaults_pod_level_resources_late():
        obj["spec"]["resources"] = deepcopy(kept)


def _count_generation(obj: Json, old: Json) -> None:
    if not same_spec(obj["spec"], old["spec"]):
        begin_generation(obj, old)


def select_own_label_values(pod: Json) -> None:
    labels, spec = labels_of(pod), pod.get("spec") or {}
    for term in _affinity_terms(spec.get("affinity") or {}):
        _add(term, term.get("matchLabelKeys"), "In", labels)
        _add(term, term.get("mismatchLabelKeys"), "NotIn", labels)
    if not enabled("MatchLabelKeysInPodTopologySpreadSelectorMerge"):
        return
    for constraint in spec.get("topologySpreadConstraints") or ():
        _add(constraint, constraint.get("matchLabelKeys"), "In", labels)


def _affinity_terms(affinity: Json) -> Iterator[Json]:
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(kind) or {}
        yield from (weighted["podAffinityTerm"] for weighted in pods.get(PREFERRED) or ())
        yield from pods.get(REQUIRED) or ()


def _add(term: Json, keys: Iterable[str] | None, operator: str, labels: Mapping[str, str]) -> None:
    selector = term.get("labelSelector")
    # Without a selector, match label keys select nothing.
    if selector is None:
        return
    for key in keys or ():
        if key in labels:
            expression = {"key": key, "operator": operator, "values": [labels[key]]}
            selector.setdefault("matchExpressions", []).append(expression)
