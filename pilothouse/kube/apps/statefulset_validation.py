"""Validation of a stateful set's spec and status."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.kube.apps.selectors import validate_required_selector
from pilothouse.kube.pod_templates import validate_template, validate_template_annotations
from pilothouse.kube.validation.fields import dns_label, nonnegative, one_of
from pilothouse.kube.validation.int_or_percent import (
    int_or_percent_value,
    validate_not_more_than_100_percent,
    validate_positive_int_or_percent,
)
from pilothouse.kube.validation.label_selectors import selector_of, shown_selector
from pilothouse.kube.validation.replica_counts import validate_counts, validate_parts_of_replicas
from pilothouse.kube.validation.replicated_templates import validate_labels_match, validate_runs_forever
from pilothouse.kube.validation.volume_claims import validate_claim_spec
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.objects import Json, annotations_of, items, labels_of, name_of, number, part, text
from pilothouse.machinery.validation.labels import validate_labels
from pilothouse.machinery.validation.object_meta import validate_annotations

_PARTS = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")


@dataclass(frozen=True, slots=True)
class StatefulSetRules:
    """The checks that an update skips, because the part cannot change or was wrong before."""

    any_service_name: bool = False
    any_claims: bool = False
    any_template: bool = False
    old_template: Json | None = None


NEW_SET = StatefulSetRules()


def validate_stateful_set_spec(spec: Json, path: Path, rules: StatefulSetRules = NEW_SET) -> Errors:
    if (policy := text(spec, "podManagementPolicy")) not in ("OrderedReady", "Parallel"):
        yield invalid(path.child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _validate_strategy(spec["updateStrategy"], path.child("updateStrategy"))
    for event in ("whenDeleted", "whenScaled"):
        retention = text(spec, "persistentVolumeClaimRetentionPolicy", event)
        event_path = path.child("persistentVolumeClaimRetentionPolicy", event)
        yield from one_of(retention, event_path, ("Retain", "Delete"))
    if not rules.any_claims:
        for position, claim in enumerate(items(spec, "volumeClaimTemplates")):
            claim_path = path.child("volumeClaimTemplates").index(position)
            yield from validate_claim_spec(part(claim, "spec"), claim_path.child("spec"))
    yield from validate_counts(spec, path, "replicas", "minReadySeconds")
    yield from nonnegative(number(spec, "ordinals", "start"), path.child("ordinals.start"))
    if spec.get("serviceName") and not rules.any_service_name:
        yield from dns_label(spec["serviceName"], path.child("serviceName"))
    yield from validate_required_selector(spec.get("selector"), path.child("selector"), "statefulset")
    yield from _validate_template(spec, path, rules)
    yield from validate_runs_forever(spec["template"], path.child("template"), "StatefulSet")


def validate_stateful_set_status(status: Json, path: Path) -> Errors:
    yield from validate_counts(status, path, "replicas", *_PARTS, "observedGeneration", "collisionCount")
    yield from validate_parts_of_replicas(status, path, _PARTS, ready="status.readyReplicas")


def _validate_strategy(strategy: Json, path: Path) -> Errors:
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is not None:
            why = "only allowed for updateStrategy 'RollingUpdate'"
            yield invalid(path.child("rollingUpdate"), _shown_rolling_update(rolling), why)
    elif kind == "RollingUpdate":
        if rolling is not None:
            yield from _validate_rolling_update(rolling, path.child("rollingUpdate"))
    else:
        shown = {"Type": kind, "RollingUpdate": rolling and _shown_rolling_update(rolling)}
        yield invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")


def _validate_rolling_update(rolling: Json, path: Path) -> Errors:
    yield from nonnegative(number(rolling, "partition"), path.child("partition"))
    limit = rolling.get("maxUnavailable")
    if limit is None:
        return
    path = path.child("maxUnavailable")
    yield from validate_positive_int_or_percent(limit, path)
    if int_or_percent_value(limit) == 0:
        yield invalid(path, limit, "cannot be 0")
    yield from validate_not_more_than_100_percent(limit, path)


def _validate_template(spec: Json, path: Path, rules: StatefulSetRules) -> Errors:
    selector = selector_of(spec.get("selector"))
    if selector is None:
        yield invalid(path.child("selector"), shown_selector(spec["selector"]), "")
        return
    template, path = _with_claims(spec), path.child("template")
    if not selector.empty:
        yield from validate_labels_match(template, selector, path)
    if not rules.any_template:
        yield from validate_template(template, path, rules.old_template)
    yield from validate_labels(labels_of(template), path.child("labels"))
    yield from validate_annotations(annotations_of(template), path.child("annotations"))
    yield from validate_template_annotations(template, path.child("annotations"), rules.old_template)


def _with_claims(spec: Json) -> Json:
    """The template as its pods will be: with a volume for each claim, and names that the controller gives them."""
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
    """As upstream's server prints it."""
    return {"Partition": number(rolling, "partition"), "MaxUnavailable": rolling.get("maxUnavailable")}
