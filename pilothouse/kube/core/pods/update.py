"""Validation of pod updates: images, deadlines, added tolerations and scheduling gates are mutable, the rest is not.

The placement of a gated pod may be narrowed. Ephemeral containers may be added, but never changed or removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from pilothouse.apiserver.registry.metadata import carry_over
from pilothouse.kinds.pods import is_mirror_pod
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.kube.core.pods.internal_form import difference, internal_form, internal_pod_spec
from pilothouse.kube.core.pods.validation.claims import NO_FIELD
from pilothouse.kube.core.pods.validation.container import validate_image_whitespace
from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.core.pods.validation.options_from_stored import options_for_pod
from pilothouse.kube.core.pods.validation.pod import (
    validate_pod,
    validate_pod_annotation_updates,
    validate_pod_annotations,
)
from pilothouse.kube.core.pods.validation.scheduling import REQUIRED
from pilothouse.kube.core.pods.validation.spec import MAX_INT32
from pilothouse.kube.validation.fields import non_empty
from pilothouse.kube.validation.tolerations import validate_tolerations
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, annotations_of
from pilothouse.machinery.validation.immutable import semantically_equal
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
    """Validate an update, except the metadata."""
    options, spec, stored = options_for_pod(old), pod["spec"], old["spec"]
    yield from validate_pod(pod, options)
    yield from validate_annotation_updates(pod, old, options)
    for kind in ("containers", "initContainers"):
        errors = list(_validate_images(spec.get(kind) or (), stored.get(kind) or (), _SPEC.child(kind)))
        yield from errors
        if len(spec.get(kind) or ()) != len(stored.get(kind) or ()):
            return
    # The deadline may be set, and moved closer.
    deadline, before = spec.get("activeDeadlineSeconds"), stored.get("activeDeadlineSeconds")
    stop = None
    if deadline is None:
        if before is not None:
            stop = invalid(_DEADLINE, None, "must not update from a positive integer to nil value")
    elif not 0 <= deadline <= MAX_INT32:
        stop = invalid(_DEADLINE, deadline, inclusive_range_error(0, MAX_INT32))
    elif before is not None and before < deadline:
        stop = invalid(_DEADLINE, deadline, "must be less than or equal to previous value")
    if stop is not None:
        yield stop
        # An invalid deadline is the only reported error; a removed deadline is reported with the other changes.
        if spec.get("activeDeadlineSeconds") is not None:
            return
    tolerations, path = spec.get("tolerations") or [], _SPEC.child("tolerations")
    present = {_without_seconds(toleration) for toleration in tolerations}
    if any(_without_seconds(toleration) not in present for toleration in stored.get("tolerations") or ()):
        yield forbidden(path, "existing toleration can not be modified except its tolerationSeconds")
    else:
        allow = options.allow_comparing_tolerations
        yield from validate_tolerations(tolerations, path, allow_comparisons=allow)
    names = {gate.get("name") for gate in (stored.get("schedulingGates") or ())}
    for position, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") not in names:
            reason = f"only deletion is allowed, but found new scheduling gate '{gate.get('name') or ''}'"
            yield forbidden(_SPEC.child("schedulingGates").index(position).child("name"), reason)
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


def _without_seconds(toleration: Json) -> frozenset[tuple[str, Any]]:
    return frozenset((name, value) for name, value in toleration.items() if name != "tolerationSeconds")


def _with_stored(spec: Json, stored: Json) -> Json:
    """Return the new spec with all mutable fields reset to the stored values."""
    for kind in ("containers", "initContainers"):
        for container, before in zip(spec.get(kind) or (), stored.get(kind) or (), strict=True):
            carry_over(container, before, "image")
    carry_over(spec, stored, "activeDeadlineSeconds", "schedulingGates", "tolerations")
    before = stored.get("terminationGracePeriodSeconds")
    if before is not None and before < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        spec["terminationGracePeriodSeconds"] = before
    return spec


def validate_gated_changes(spec: Json, stored: Json, path: Path) -> Errors:
    """Accept added node selectors, and added requirements in the terms of a required node affinity."""
    selector, before = spec.get("nodeSelector") or {}, stored.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in before.items()):
        reason = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid(path.child("nodeSelector"), spec.get("nodeSelector"), reason)
    affinity, stored_affinity = _node_affinity(spec), _node_affinity(stored)
    if not semantically_equal(affinity, stored_affinity):
        at = path.child("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
        terms = _terms(affinity)
        stored_terms = _terms(stored_affinity)
        if stored_terms:
            if terms is None or len(terms) != len(stored_terms):
                printed = None if terms is None else [internal_form("NodeSelectorTerm", term) for term in terms]
                yield invalid(at, printed, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
            else:
                for position, (term, before) in enumerate(zip(terms, stored_terms, strict=True)):
                    if not _only_adds(term, before):
                        internal = internal_form("NodeSelectorTerm", term)
                        yield invalid(
                            at.index(position), internal, "only additions are allowed (no mutations or deletions)"
                        )


def munge_gated(spec: Json, stored: Json) -> None:
    """Reset the fields that are mutable in a gated pod, for comparison of the other fields."""
    carry_over(spec, stored, "nodeSelector")
    before = _node_affinity(stored)
    if semantically_equal(_node_affinity(spec), before):
        return
    affinity = {name: value for name, value in (spec.get("affinity") or {}).items() if name != "nodeAffinity"}
    if before is not None:
        affinity["nodeAffinity"] = before
    if affinity or stored.get("affinity") is not None:
        spec["affinity"] = affinity
    else:
        spec.pop("affinity", None)


def _node_affinity(spec: Json) -> Json | None:
    return (spec.get("affinity") or {}).get("nodeAffinity")


def _terms(affinity: Json | None) -> Sequence[Json] | None:
    return ((affinity or {}).get(REQUIRED) or {}).get("nodeSelectorTerms")


def _only_adds(term: Json, stored: Json) -> bool:
    before = {name: stored.get(name) or [] for name in ("matchExpressions", "matchFields")}
    after = {name: term.get(name) or [] for name in before}
    # A term without requirements matches nothing; added requirements would widen the term.
    if not any(before.values()):
        return not any(after.values())
    return all(semantically_equal(after[name][: len(terms)], terms) for name, terms in before.items())


_PATH = root("spec", "ephemeralContainers")


def is_static(pod: Json) -> bool:
    return is_mirror_pod(pod)


def validate_ephemeral_containers_update(pod: Json, old: Json) -> Errors:
    """Validate everything except the metadata and `static_pod_error`."""
    options = options_for_pod(old)
    yield from validate_pod(pod, options)
    yield from validate_annotation_updates(pod, old, options)
    present = {container.get("name"): container for container in pod["spec"].get("ephemeralContainers") or ()}
    for container in old["spec"].get("ephemeralContainers") or ():
        name = container.get("name") or ""
        if name not in present:
            yield forbidden(_PATH, f"existing ephemeral containers {quote(name)} may not be removed\n")
        elif not same_spec(container, present[name]):
            changes = difference(
                internal_form("EphemeralContainer", container), internal_form("EphemeralContainer", present[name])
            )
            yield forbidden(_PATH, f"existing ephemeral containers {quote(name)} may not be changed\n{changes}")


def static_pod_error() -> Errors:
    yield forbidden(NO_FIELD, "static pods do not support ephemeral containers")
