"""StatefulSets: their defaults, what updates may change, and what is wrong with them.

Most of the spec is fixed; what was wrong before may stay so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.apps.statefulset_validation import (
    StatefulSetRules,
    validate_stateful_set_spec,
    validate_stateful_set_status,
)
from pilothouse.kube.core.pods.defaults.resources import round_up, round_up_requirements
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.kube.core.pods.warnings.volumes import claim_warnings
from pilothouse.kube.gated_fields import drop_disabled, gated
from pilothouse.kube.pod_templates import default_pod_template
from pilothouse.kube.strategy import StatusSubresource
from pilothouse.kube.template_columns import READY, container_columns
from pilothouse.kube.validation.replica_counts import validate_collisions
from pilothouse.kube.workloads import WorkloadStrategy
from pilothouse.machinery.field import Errors, Path, forbidden, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, items, number, part
from pilothouse.machinery.validation.object_names import name_is_dns_label

_SPEC, _STATUS = root("spec"), root("status")
_CLAIMS = root("spec", "volumeClaimTemplates")
_GATED_FIELDS = (gated("MaxUnavailableStatefulSet", "spec.updateStrategy.rollingUpdate.maxUnavailable"),)
_MUTABLE = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)
_FORBIDDEN_UPDATE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class StatefulSetStrategy(WorkloadStrategy):
    kind = GroupVersionKind("apps", "v1", "StatefulSet")

    def name_rule(self, name: str, prefix: bool) -> list[str]:
        return name_is_dns_label(name, prefix)

    def default(self, obj: Json) -> None:
        spec = obj["spec"]
        spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
        _default_strategy(spec.setdefault("updateStrategy", {}))
        policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for event in ("whenDeleted", "whenScaled"):
            policy[event] = policy.get(event) or "Retain"
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        default_pod_template(spec["template"])
        for claim in items(spec, "volumeClaimTemplates"):
            claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
            claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
            round_up_requirements(claim["spec"].get("resources"))
            status = claim.setdefault("status", {})
            status["phase"] = status.get("phase") or "Pending"
            round_up(status.get("capacity"))
            round_up(status.get("allocatedResources"))

    def prepare_for_create(self, obj: Json) -> None:
        super().prepare_for_create(obj)
        drop_disabled(obj, None, _GATED_FIELDS)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        drop_disabled(obj, old, _GATED_FIELDS)
        super().prepare_for_update(obj, old)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_stateful_set_spec(obj["spec"], _SPEC)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from _validate_stateful_set_update(obj["spec"], old["spec"], _SPEC)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        yield from super().warnings_on_create(obj)
        yield from _claim_warnings(obj)
        yield from _history_warnings(obj)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        yield from super().warnings_on_update(obj, old)
        yield from _claim_warnings(obj, "Spec")
        yield from _history_warnings(obj)


class StatefulSetStatusStrategy(StatusSubresource, StatefulSetStrategy):
    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from validate_stateful_set_status(part(obj, "status"), _STATUS)
        yield from self.validate_metadata_update(obj, old)
        yield from validate_collisions(part(obj, "status"), part(old, "status"), _STATUS)


def _claim_warnings(obj: Json, *below: str) -> Iterable[str]:
    """`below` stands for the part of the path that upstream adds on updates only."""
    for position, claim in enumerate(items(obj, "spec", "volumeClaimTemplates")):
        yield from claim_warnings(part(claim, "spec"), _CLAIMS.index(position).child(*below))


def _history_warnings(obj: Json) -> Iterable[str]:
    if number(obj, "spec", "revisionHistoryLimit") < 0:
        yield (
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
        )


def _default_strategy(strategy: Json) -> None:
    """A rolling update that was chosen by name keeps its parameters as they are, even when there are none."""
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        strategy["rollingUpdate"].setdefault("partition", 0)
        if enabled("MaxUnavailableStatefulSet"):
            strategy["rollingUpdate"].setdefault("maxUnavailable", 1)


def _validate_stateful_set_update(spec: Json, old: Json, path: Path) -> Errors:
    rules = StatefulSetRules(any_service_name=True, any_claims=True, old_template=old["template"])
    if any(validate_stateful_set_spec(old, path, rules)):
        rules = replace(rules, any_template=True)
    yield from validate_stateful_set_spec(spec, path, rules)
    if not same_spec(_fixed(spec), _fixed(old)):
        yield forbidden(path, _FORBIDDEN_UPDATE)


def _fixed(spec: Json) -> Json:
    return {field: value for field, value in spec.items() if field not in _MUTABLE}


STATEFUL_SETS = Resource(
    names=Names("statefulsets", kind="StatefulSet", short=["sts"], categories=["all"]),
    strategy=StatefulSetStrategy(),
    status=StatefulSetStatusStrategy(),
    group="apps",
    zero_value={"spec": {"replicas": 0}},
    columns=[
        NAME,
        READY,
        AGE,
        *container_columns(),
    ],
)
