"""Accessors for derived properties of a Job's spec."""

from __future__ import annotations

from pilothouse.machinery.objects import Json, items

CONTROLLER_NAME = "kubernetes.io/job-controller"
_MODES = (None, "NonIndexed", "Indexed")


def is_indexed(job: Json) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def is_of_a_known_mode(job: Json) -> bool:
    return job["spec"].get("completionMode") in _MODES


def is_suspended(job: Json) -> bool:
    return bool(job["spec"].get("suspend"))


def limits_each_index(job: Json) -> bool:
    return job["spec"].get("backoffLimitPerIndex") is not None


def replaces_only_failed(job: Json) -> bool:
    """Return whether a terminating pod is replaced only after it has ended."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def is_finished(job: Json) -> bool:
    return any(
        each["status"] == "True"
        for each in items(job, "status", "conditions")
        if each["type"] in ("Complete", "Failed")
    )


def is_managed_elsewhere(job: Json) -> bool:
    return job["spec"].get("managedBy") not in (None, CONTROLLER_NAME)
