"""StatefulSets. Updates may change few fields of the spec, and may keep existing faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube import workloads
from pilothouse.kube.core.pods.defaults.resources import round_up, round_up_requirements
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.kube.core.pods.internal_form import internal_form
from pilothouse.kube.core.pods.warnings.volumes import claim_warnings
from pilothouse.kube.strategy import StatusSubresource, gated
from pilothouse.kube.validation import replica_counts
from pilothouse.kube.validation.fields import dns_label, nonnegative, one_of
from pilothouse.kube.validation.replicated_templates import validate_labels_match, validate_runs_forever
from pilothouse.kube.validation.selectors import selector_of, shown_selector
from pilothouse.kube.validation.volume_claims import validate_claim_spec
from pilothouse.machinery import version_rules
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import (
    Errors,
    Path,
    forbidden,
    invalid,
    root,
)
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, annotations_of, items, labels_of, name_of, number, part, text
from pilothouse.machinery.schema.printing import object_meta_in_messages
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE
from pilothouse.machinery.validation.labels import validate_labels
from pilothouse.machinery.validation.names import name_is_dns_label
from pilothouse.machinery.validation.object_meta import validate_annotations

_SPEC, _STATUS = root("spec"), root("status")
_CLAIMS = root("spec", "volumeClaimTemplates")
_CLAIM_STATUS = (
    "phase",
    "accessModes",
    "capacity",
    "conditions",
    "allocatedResources",
    "allocatedResourceStatuses",
    "currentVolumeAttributesClassName",
    "modifyVolumeStatus",
    "healthStatus",
)
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

_PARTS = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")


class StatefulSetStrategy(workloads.WorkloadStrategy):
    gated_fields = (gated("MaxUnavailableStatefulSet", "spec.updateStrategy.rollingUpdate.maxUnavailable"),)
    kind = GroupVersionKind("apps", "v1", "StatefulSet")
    name_rule = staticmethod(name_is_dns_label)

    def default(self, obj: Json) -> None:
        spec = obj["spec"]
        spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
        # An explicit RollingUpdate keeps its parameters, even empty.
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
            strategy.setdefault("rollingUpdate", {})
        if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
            strategy["rollingUpdate"].setdefault("partition", 0)
            if enabled("MaxUnavailableStatefulSet"):
                strategy["rollingUpdate"].setdefault("maxUnavailable", 1)
        policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for event in ("whenDeleted", "whenScaled"):
            policy[event] = policy.get(event) or "Retain"
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        workloads.default_pod_template(spec["template"])
        for claim in items(spec, "volumeClaimTemplates"):
            claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
            claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
            round_up_requirements(claim["spec"].get("resources"))
            status = claim.setdefault("status", {})
            status["phase"] = status.get("phase") or "Pending"
            round_up(status.get("capacity"))
            round_up(status.get("allocatedResources"))

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
        yield from replica_counts.validate_collisions(part(obj, "status"), part(old, "status"), _STATUS)


def _claim_warnings(obj: Json, *below: str) -> Iterable[str]:
    """Yield warnings; `below` is the path segment that upstream adds on updates."""
    for position, claim in enumerate(items(obj, "spec", "volumeClaimTemplates")):
        yield from claim_warnings(part(claim, "spec"), _CLAIMS.index(position).child(*below))


def _history_warnings(obj: Json) -> Iterable[str]:
    if number(obj, "spec", "revisionHistoryLimit") < 0:
        yield (
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
        )


def _validate_stateful_set_update(spec: Json, old: Json, path: Path) -> Errors:
    rules = StatefulSetRules(any_service_name=True, any_claims=True, old_template=old["template"])
    if any(validate_stateful_set_spec(old, path, rules)):
        rules = replace(rules, any_template=True)
    yield from validate_stateful_set_spec(spec, path, rules)
    if same_spec(_fixed(spec), _fixed(old)):
        return
    if not version_rules.holds("DeclaredValidation"):
        yield forbidden(path, _FORBIDDEN_UPDATE)
        return
    for field in ("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"):
        if not same_spec({field: spec.get(field)}, {field: old.get(field)}):
            shown = spec.get(field)
            if field == "volumeClaimTemplates":
                shown = [_shown_claim(claim) for claim in shown or ()]
            yield invalid(path.child(field), shown, FIELD_IMMUTABLE)


def _shown_claim(claim: Json) -> Json:
    """Return a claim as upstream's messages print it."""
    status = part(claim, "status")
    return object_meta_in_messages(part(claim, "metadata")) | {
        "Spec": internal_form("PersistentVolumeClaimSpec", part(claim, "spec")),
        "Status": {name[0].upper() + name[1:]: status.get(name) for name in _CLAIM_STATUS},
    }


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
        workloads.READY,
        AGE,
        *workloads.container_columns(),
    ],
)


@dataclass(frozen=True, slots=True)
class StatefulSetRules:
    """Checks that an update skips: immutable or already invalid parts."""

    any_service_name: bool = False
    any_claims: bool = False
    any_template: bool = False
    old_template: Json | None = None


NEW_SET = StatefulSetRules()


def validate_stateful_set_spec(spec: Json, path: Path, rules: StatefulSetRules = NEW_SET) -> Errors:
    if (policy := text(spec, "podManagementPolicy")) not in ("OrderedReady", "Parallel"):
        yield invalid(path.child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = spec["updateStrategy"]
    update_strategy_path = path.child("updateStrategy")
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is not None:
            reason = "only allowed for updateStrategy 'RollingUpdate'"
            yield invalid(update_strategy_path.child("rollingUpdate"), _shown_rolling_update(rolling), reason)
    elif kind == "RollingUpdate":
        if rolling is not None:
            yield from _validate_rolling_update(rolling, update_strategy_path.child("rollingUpdate"))
    else:
        rendered = {"Type": kind, "RollingUpdate": rolling and _shown_rolling_update(rolling)}
        yield invalid(update_strategy_path, rendered, "must be 'RollingUpdate' or 'OnDelete'")
    for event in ("whenDeleted", "whenScaled"):
        retention = text(spec, "persistentVolumeClaimRetentionPolicy", event)
        event_path = path.child("persistentVolumeClaimRetentionPolicy", event)
        yield from one_of(retention, event_path, ("Retain", "Delete"))
    if not rules.any_claims:
        for position, claim in enumerate(items(spec, "volumeClaimTemplates")):
            claim_path = path.child("volumeClaimTemplates").index(position)
            yield from validate_claim_spec(part(claim, "spec"), claim_path.child("spec"))
    yield from replica_counts.validate_counts(spec, path, "replicas", "minReadySeconds")
    yield from nonnegative(number(spec, "ordinals", "start"), path.child("ordinals.start"))
    if spec.get("serviceName") and not rules.any_service_name:
        yield from dns_label(spec["serviceName"], path.child("serviceName"))
    yield from workloads.validate_required_selector(spec.get("selector"), path.child("selector"), "statefulset")
    yield from _validate_template(spec, path, rules)
    yield from validate_runs_forever(spec["template"], path.child("template"), "StatefulSet")


def validate_stateful_set_status(status: Json, path: Path) -> Errors:
    yield from replica_counts.validate_counts(status, path, "replicas", *_PARTS, "observedGeneration", "collisionCount")
    yield from replica_counts.validate_parts_of_replicas(status, path, _PARTS, ready="status.readyReplicas")


def _validate_rolling_update(rolling: Json, path: Path) -> Errors:
    yield from nonnegative(number(rolling, "partition"), path.child("partition"))
    limit = rolling.get("maxUnavailable")
    if limit is None:
        return
    path = path.child("maxUnavailable")
    yield from replica_counts.validate_positive_int_or_percent(limit, path)
    if replica_counts.int_or_percent_value(limit) == 0:
        yield invalid(path, replica_counts.printable(limit), "cannot be 0")
    yield from replica_counts.validate_not_more_than_100_percent(limit, path)


def _validate_template(spec: Json, path: Path, rules: StatefulSetRules) -> Errors:
    selector = selector_of(spec.get("selector"))
    if selector is None:
        yield invalid(path.child("selector"), shown_selector(spec["selector"]), "")
        return
    template, path = _with_claims(spec), path.child("template")
    if not selector.empty:
        yield from validate_labels_match(template, selector, path)
    if not rules.any_template:
        yield from workloads.validate_template(template, path, rules.old_template)
    yield from validate_labels(labels_of(template), path.child("labels"))
    yield from validate_annotations(annotations_of(template), path.child("annotations"))
    yield from workloads.validate_template_annotations(template, path.child("annotations"), rules.old_template)


def _with_claims(spec: Json) -> Json:
    """Return the template with a volume per claim and the generated pod names."""
    template: Json = spec["template"]
    pod = {key: value for key, value in part(template, "spec").items() if key not in ("hostname", "subdomain")}
    volumes = list(_volumes(spec))
    return template | {"spec": pod | {"volumes": volumes} if volumes else pod}


def _volumes(spec: Json) -> Iterator[Json]:
    claims = dict.fromkeys(name_of(claim) for claim in items(spec, "volumeClaimTemplates"))
    for name in claims:
        yield {"name": name, "persistentVolumeClaim": {"claimName": name}}
    for volume in items(spec, "template", "spec", "volumes"):
        if volume.get("name") not in claims:
            yield volume


def _shown_rolling_update(rolling: Json) -> Json:
    """Return the rolling update as upstream's messages print it."""
    return {"Partition": number(rolling, "partition"), "MaxUnavailable": rolling.get("maxUnavailable")}
