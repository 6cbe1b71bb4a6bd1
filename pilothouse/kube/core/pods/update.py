"""Validation of an update of a pod: images, deadlines, added tolerations and lifted gates may change, nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from pilothouse.apiserver.registry.carry_over import carry_over
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.kube.core.pods.gated_pods import munge_gated, validate_gated_changes
from pilothouse.kube.core.pods.internal_form import difference, internal_pod_spec
from pilothouse.kube.core.pods.validation.annotations import (
    validate_pod_annotation_updates,
    validate_pod_annotations,
)
from pilothouse.kube.core.pods.validation.container import validate_image_whitespace
from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.core.pods.validation.options_from_stored import options_for_pod
from pilothouse.kube.core.pods.validation.pod import validate_pod
from pilothouse.kube.core.pods.validation.spec import MAX_INT32
from pilothouse.kube.validation.fields import non_empty
from pilothouse.kube.validation.tolerations import validate_tolerations
from pilothouse.machinery.field import Errors, FieldError, Path, forbidden, invalid, root
from pilothouse.machinery.objects import Json, annotations_of
from pilothouse.machinery.validation.pattern_format import inclusive_range_error

_SPEC = root("spec")
_ANNOTATIONS = root("metadata", "annotations")
_DEADLINE = _SPEC.child("activeDeadlineSeconds")
_UPDATABLE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)


def validate_pod_update(pod: Json, old: Json) -> Errors:
    """Validate all of an update but its metadata."""
    options, spec, stored = options_for_pod(old), pod["spec"], old["spec"]
    yield from validate_pod(pod, options)
    yield from validate_annotation_updates(pod, old, options)
    for kind in ("containers", "initContainers"):
        errors = list(_validate_images(spec.get(kind) or (), stored.get(kind) or (), _SPEC.child(kind)))
        yield from errors
        if len(spec.get(kind) or ()) != len(stored.get(kind) or ()):
            return
    stop = _deadline_error(spec, stored)
    if stop is not None:
        yield stop
        # Taking the deadline away is told along with everything else; a wrong one is told at once.
        if spec.get("activeDeadlineSeconds") is not None:
            return
    yield from _validate_added_tolerations(spec, stored, options)
    yield from _validate_lifted_gates(spec.get("schedulingGates") or (), stored.get("schedulingGates") or ())
    if not same_spec(spec, stored):
        munged = _with_stored(deepcopy(spec), stored)
        if stored.get("schedulingGates"):
            yield from validate_gated_changes(munged, stored, _SPEC)
            munge_gated(munged, stored)
        if not same_spec(munged, stored):
            changes = difference(internal_pod_spec(stored), internal_pod_spec(munged))
            yield forbidden(_SPEC, f"pod updates may not change fields other than {_UPDATABLE}\n{changes}")


def validate_annotation_updates(pod: Json, old: Json, options: PodValidationOptions) -> Errors:
    annotations = annotations_of(pod)
    yield from validate_pod_annotation_updates(annotations, annotations_of(old), _ANNOTATIONS)
    yield from validate_pod_annotations(annotations, pod["spec"], _ANNOTATIONS, options)


def _validate_images(containers: Sequence[Json], stored: Sequence[Json], path: Path) -> Errors:
    if len(containers) != len(stored):
        yield forbidden(path, "pod updates may not add or remove containers")
        return
    for position, container in enumerate(containers):
        yield from non_empty(container.get("image"), path.index(position).child("image"))
        yield from validate_image_whitespace(container, path.index(position))


def _deadline_error(spec: Json, stored: Json) -> FieldError | None:
    """A deadline may be set, and then only come closer."""
    new, old = spec.get("activeDeadlineSeconds"), stored.get("activeDeadlineSeconds")
    if new is None:
        why = "must not update from a positive integer to nil value"
        return None if old is None else invalid(_DEADLINE, None, why)
    if not 0 <= new <= MAX_INT32:
        return invalid(_DEADLINE, new, inclusive_range_error(0, MAX_INT32))
    if old is not None and old < new:
        return invalid(_DEADLINE, new, "must be less than or equal to previous value")
    return None


def _validate_added_tolerations(spec: Json, stored: Json, options: PodValidationOptions) -> Errors:
    tolerations, path = spec.get("tolerations") or [], _SPEC.child("tolerations")
    present = {_without_seconds(each) for each in tolerations}
    if any(_without_seconds(each) not in present for each in stored.get("tolerations") or ()):
        yield forbidden(path, "existing toleration can not be modified except its tolerationSeconds")
        return
    allow = options.allow_comparing_tolerations
    yield from validate_tolerations(tolerations, path, allow_comparisons=allow)


def _without_seconds(toleration: Json) -> frozenset[tuple[str, Any]]:
    return frozenset((name, value) for name, value in toleration.items() if name != "tolerationSeconds")


def _validate_lifted_gates(gates: Iterable[Json], stored: Iterable[Json]) -> Errors:
    known = {gate.get("name") for gate in stored}
    for position, gate in enumerate(gates):
        if gate.get("name") not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.get('name') or ''}'"
            yield forbidden(_SPEC.child("schedulingGates").index(position).child("name"), why)


def _with_stored(spec: Json, stored: Json) -> Json:
    """The new spec with everything as it is stored that was allowed to change."""
    for kind in ("containers", "initContainers"):
        for container, before in zip(spec.get(kind) or (), stored.get(kind) or (), strict=True):
            carry_over(container, before, "image")
    carry_over(spec, stored, "activeDeadlineSeconds", "schedulingGates", "tolerations")
    before = stored.get("terminationGracePeriodSeconds")
    if before is not None and before < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        spec["terminationGracePeriodSeconds"] = before
    return spec
