"""Validation of pods, pod templates and well-known annotations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from pilothouse.apiserver.server.features import per_gates
from pilothouse.kinds.pods import MIRROR_POD
from pilothouse.kube.core.pods.validation.container import validate_image_whitespace
from pilothouse.kube.core.pods.validation.options import PodValidationOptions, new_pod_options, new_template_options
from pilothouse.kube.core.pods.validation.profiles import (
    APPARMOR_PREFIX,
    validate_apparmor_annotations,
    validate_profiles_agree,
    validate_seccomp_annotations,
)
from pilothouse.kube.core.pods.validation.spec import validate_pod_spec
from pilothouse.kube.validation.tolerations import validate_tolerations
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.codec.json import JsonError, parse
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, located
from pilothouse.machinery.gofmt import json_type
from pilothouse.machinery.objects import Json, annotations_of, labels_of
from pilothouse.machinery.validation.labels import validate_labels
from pilothouse.machinery.validation.object_meta import validate_annotations


def validate_new_pod(pod: Json) -> Errors:
    """Validate a new pod, except the metadata. Replicas of a valid pod are not validated again."""
    valid, form = _valid_forms(), replica_form(pod)
    if form is not None and valid.get(form):
        return
    found = list(located(lambda top: _validate_new_pod(pod, top), Path()))
    if form is not None and not found:
        valid.put(form, True, size=len(form))
    yield from found


@per_gates
def _valid_forms() -> BoundedCache[bytes, bool]:
    return replica_forms()


def replica_forms() -> BoundedCache[bytes, bool]:
    """Return a new cache of results by replica form. Keep one for each configuration of feature gates."""
    return BoundedCache(entries=512, total_bytes=2 << 20)


_TOKEN_VOLUME = re.compile("kube-api-access-[a-z0-9]{5}")
_ANY_TOKEN_VOLUME = "kube-api-access-aaaaa"


def replica_form(pod: Json) -> bytes | None:
    """Return a text that is equal for replicas of a pod: annotations and spec, with the same name of the token volume.

    Rules and warnings that remember replicas must read nothing else of a pod. Names of token volumes differ in a random
    part of fixed length and alphabet, so that a pod is as valid with one name as with another. None for a pod whose
    validity depends on its own name.
    """
    spec = pod["spec"]
    try:
        form = orjson.dumps((annotations_of(pod), spec))
    except orjson.JSONEncodeError:
        return None
    if b'"ephemeral":' in form:
        return None
    volumes = spec.get("volumes")
    name = volumes[-1].get("name") if volumes else None
    if name and name != _ANY_TOKEN_VOLUME and _TOKEN_VOLUME.fullmatch(name):
        if _ANY_TOKEN_VOLUME.encode() in form:
            return None
        form = form.replace(name.encode(), _ANY_TOKEN_VOLUME.encode())
    return form


def validate_pod(pod: Json, options: PodValidationOptions) -> Errors:
    """Validate a new or updated pod, except the metadata."""
    return located(lambda top: _validate_pod(pod, top, options), Path())


def validate_pod_template(template: Json, path: Path, options: PodValidationOptions | None = None) -> Errors:
    """Validate the template of a workload. For updates, get the options from `options_for_template`."""
    return located(lambda at: _validate_pod_template(template, at, options or new_template_options()), path)


def _validate_new_pod(pod: Json, top: Path) -> Errors:
    spec, path = pod["spec"], top.child("spec")
    yield from _validate_pod(pod, top, new_pod_options())
    if spec.get("ephemeralContainers"):
        yield forbidden(path.child("ephemeralContainers"), "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden(path.child("nodeName"), "cannot be set until all schedulingGates have been cleared")
    yield from validate_profiles_agree(annotations_of(pod), spec, path)


def _validate_pod(pod: Json, top: Path, options: PodValidationOptions) -> Errors:
    spec, path = pod["spec"], top.child("spec")
    yield from validate_pod_annotations(annotations_of(pod), spec, top.child("metadata", "annotations"), options)
    yield from validate_pod_spec(spec, path, options, pod=pod)
    if not spec.get("serviceAccountName") and spec.get("volumes"):
        for position, volume in enumerate(spec["volumes"]):
            for index, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    at = (
                        path.child("volumes")
                        .index(position)
                        .child("projected", "sources")
                        .index(index)
                        .child("serviceAccountToken")
                    )
                    yield forbidden(at, "must not be specified when serviceAccountName is not set")
    for kind in ("containers", "initContainers"):
        for position, container in enumerate(spec.get(kind) or ()):
            yield from validate_image_whitespace(container, path.child(kind).index(position))


def _validate_pod_template(template: Json, path: Path, options: PodValidationOptions) -> Errors:
    spec, annotations = template.get("spec") or {}, annotations_of(template)
    yield from validate_labels(labels_of(template), path.child("labels"))
    yield from validate_annotations(annotations, path.child("annotations"))
    yield from validate_pod_annotations(annotations, spec, path.child("annotations"), options)
    yield from validate_pod_spec(spec, path.child("spec"), options)
    yield from validate_profiles_agree(annotations, spec, path.child("spec"))
    if spec.get("ephemeralContainers"):
        reason = "ephemeral containers not allowed in pod template"
        yield forbidden(path.child("spec", "ephemeralContainers"), reason)


TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_INTEGER = re.compile("-[0-9]+|0|[1-9][0-9]*")
_TOLERATION_FIELDS = ("key", "operator", "value", "effect", "tolerationSeconds")


def validate_pod_annotations(
    annotations: Mapping[str, str], spec: Json, path: Path, options: PodValidationOptions
) -> Errors:
    if not annotations:
        return
    if MIRROR_POD in annotations and not spec.get("nodeName"):
        reason = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid(path.key(MIRROR_POD), annotations[MIRROR_POD], reason)
    if annotations.get(TOLERATIONS):
        yield from _validate_tolerations(annotations[TOLERATIONS], path, options)
    if not options.allow_invalid_deletion_cost and not has_valid_deletion_cost(annotations):
        yield invalid(path.key(DELETION_COST), annotations[DELETION_COST], "must be a 32bit integer")
    yield from validate_seccomp_annotations(annotations, path)
    yield from validate_apparmor_annotations(annotations, spec, path)


def has_valid_deletion_cost(annotations: Mapping[str, str]) -> bool:
    text = annotations.get(DELETION_COST)
    if text is None:
        return True
    return bool(_INTEGER.fullmatch(text)) and len(text.lstrip("-0")) <= 10 and -(2**31) <= int(text) < 2**31


def validate_pod_annotation_updates(new: Mapping[str, str], old: Mapping[str, str], path: Path) -> Errors:
    """Yield an error for each immutable annotation that an update adds, changes or removes."""
    for key in sorted(old):
        if new.get(key) != old[key]:
            if key.startswith(APPARMOR_PREFIX):
                yield forbidden(path.key(key), "may not remove or update AppArmor annotations")
            if key == MIRROR_POD:
                yield forbidden(path.key(key), "may not remove or update mirror pod annotation")
    for key in sorted(new.keys() - old.keys()):
        if key.startswith(APPARMOR_PREFIX):
            yield forbidden(path.key(key), "may not add AppArmor annotations")
        if key == MIRROR_POD:
            yield forbidden(path.key(key), "may not add mirror pod annotation")


def _validate_tolerations(text: str, path: Path, options: PodValidationOptions) -> Errors:
    try:
        value = parse(text.encode()).value
    except JsonError as error:
        yield invalid(path, TOLERATIONS, str(error))
        return
    if value is not None and not isinstance(value, list):
        reason = f"json: cannot unmarshal {json_type(value)} into Go value of type []core.Toleration"
        yield invalid(path, TOLERATIONS, reason)
        return
    allow = options.allow_comparing_tolerations
    tolerations = [_toleration(item) for item in value or ()]
    yield from validate_tolerations(tolerations, path.child(TOLERATIONS), allow_comparisons=allow)


def _toleration(value: Any) -> Json:
    """Return the toleration. Field names are case-insensitive, as in Go."""
    fields = {key.lower(): field for key, field in value.items()} if isinstance(value, dict) else {}
    return {name: fields[name.lower()] for name in _TOLERATION_FIELDS if fields.get(name.lower()) is not None}
