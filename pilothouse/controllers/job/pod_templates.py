"""Pod templates of a job. Indexed jobs add the index as label, annotation, environment variable and hostname."""

from __future__ import annotations

from pilothouse.controllers.job.pod_failure_policy import match_failure
from pilothouse.controllers.job.pods import (
    COMPLETION_INDEX,
    FAILURE_COUNT,
    IGNORED_FAILURE_COUNT,
    TRACKING_FINALIZER,
    failure_count,
    ignored_failure_count,
)
from pilothouse.controllers.job.spec import is_indexed, limits_each_index
from pilothouse.machinery.objects import Json, name_of

_VARIABLE: Json = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}},
}
_MAX_PREFIX = 63 - 5
"""Maximum generateName length that is not truncated."""


def template_of(job: Json) -> Json:
    """Return the pod template of the job, with the tracking finalizer."""
    template: Json = job["spec"]["template"]
    meta = template.get("metadata") or {}
    finalizers = meta.get("finalizers") or []
    if TRACKING_FINALIZER not in finalizers:
        finalizers = [*finalizers, TRACKING_FINALIZER]
    spec = _with_variable(template["spec"]) if is_indexed(job) else template["spec"]
    return {**template, "metadata": {**meta, "finalizers": finalizers}, "spec": spec}


def template_of_index(job: Json, template: Json, index: int, replaced: Json | None) -> Json:
    """Return the template for one index. `replaced` is the failed pod that the new pod replaces, if any."""
    meta = template["metadata"]
    own = {COMPLETION_INDEX: str(index)}
    annotations = (meta.get("annotations") or {}) | own
    if limits_each_index(job):
        annotations |= _failure_counts(job, replaced)
    labels = (meta.get("labels") or {}) | own
    spec = {**template["spec"], "hostname": f"{name_of(job)}-{index}"}
    return {**template, "metadata": {**meta, "labels": labels, "annotations": annotations}, "spec": spec}


def generate_name(job: Json, index: int) -> str:
    """Return the generateName of an index; the job's name is truncated, never the index."""
    suffix = f"-{index}-"
    return name_of(job)[: _MAX_PREFIX - len(suffix)] + suffix


def _failure_counts(job: Json, replaced: Json | None) -> dict[str, str]:
    if replaced is None:
        return {FAILURE_COUNT: "0"}
    counts = match_failure(job, replaced).counts
    ignored = ignored_failure_count(replaced) + (not counts)
    counted = {FAILURE_COUNT: str(failure_count(replaced) + counts)}
    return counted | ({IGNORED_FAILURE_COUNT: str(ignored)} if ignored else {})


def _with_variable(spec: Json) -> Json:
    lists = {
        field: [_with_index(each) for each in spec[field]]
        for field in ("initContainers", "containers")
        if spec.get(field)
    }
    return spec | lists


def _with_index(container: Json) -> Json:
    variables = container.get("env") or []
    if any(each["name"] == _VARIABLE["name"] for each in variables):
        return container
    return {**container, "env": [*variables, _VARIABLE]}
