"""Defaults of jobs, and generated labels and selectors."""

from __future__ import annotations

from pilothouse.kube.workloads import default_pod_template
from pilothouse.machinery.objects import Json, items, labels_of, metadata, name_of, uid_of

JOB_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
CONTROLLER_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
CONTROLLER_UID = CONTROLLER_UID_LABELS[1]

_BACKOFF_LIMIT, _NO_BACKOFF_LIMIT = 6, 2**31 - 1


def default_job(job: Json) -> None:
    spec = job["spec"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    per_index = spec.get("backoffLimitPerIndex") is not None
    spec.setdefault("backoffLimit", _NO_BACKOFF_LIMIT if per_index else _BACKOFF_LIMIT)
    default_labels(job)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    has_policy = spec.get("podFailurePolicy") is not None
    spec.setdefault("podReplacementPolicy", "Failed" if has_policy else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    default_job_template(spec)


def default_job_template(spec: Json) -> None:
    """Fill in the defaults of a job's spec, in a job or in the template of a cron job."""
    for rule in items(spec, "podFailurePolicy", "rules"):
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"
    default_pod_template(spec["template"])


def default_labels(job: Json) -> None:
    """Default the labels of a job to the labels of its template, including generated labels."""
    labels = labels_of(job["spec"]["template"])
    if labels and not labels_of(job):
        metadata(job)["labels"] = labels


def generate_selector(job: Json) -> None:
    """Generate a unique selector. User labels are kept; validation may reject them."""
    labels = metadata(job["spec"]["template"]).setdefault("labels", {})
    for key in JOB_NAME_LABELS:
        labels.setdefault(key, name_of(job))
    for key in CONTROLLER_UID_LABELS:
        labels.setdefault(key, uid_of(job))
    selector = job["spec"].setdefault("selector", {})
    selector.setdefault("matchLabels", {}).setdefault(CONTROLLER_UID, uid_of(job))
