"""A whole pod, and the template of one."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.kube.core.pods.validation.annotations import validate_pod_annotations
from pilothouse.kube.core.pods.validation.container import validate_image_whitespace
from pilothouse.kube.core.pods.validation.options import PodValidationOptions, new_pod_options, new_template_options
from pilothouse.kube.core.pods.validation.profiles import validate_profiles_agree
from pilothouse.kube.core.pods.validation.spec import validate_pod_spec
from pilothouse.machinery.field import Errors, Path, forbidden, located
from pilothouse.machinery.objects import Json, annotations_of, labels_of
from pilothouse.machinery.validation.labels import validate_labels
from pilothouse.machinery.validation.object_meta import validate_annotations


def validate_new_pod(pod: Json) -> Errors:
    """Validate all of a new pod but its metadata."""
    return located(lambda top: _validate_new_pod(pod, top), Path())


def validate_pod(pod: Json, options: PodValidationOptions) -> Errors:
    """Yield what is wrong with a pod, new or updated."""
    return located(lambda top: _validate_pod(pod, top, options), Path())


def validate_pod_template(template: Json, path: Path, options: PodValidationOptions | None = None) -> Errors:
    """A template in a workload. `options_for_template` gives the options for an update."""
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
        yield from _validate_no_tokens(spec["volumes"], path.child("volumes"))
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
        why = "ephemeral containers not allowed in pod template"
        yield forbidden(path.child("spec", "ephemeralContainers"), why)


def _validate_no_tokens(volumes: Sequence[Json], path: Path) -> Errors:
    for position, volume in enumerate(volumes):
        for index, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                at = path.index(position).child("projected", "sources").index(index).child("serviceAccountToken")
                yield forbidden(at, "must not be specified when serviceAccountName is not set")
