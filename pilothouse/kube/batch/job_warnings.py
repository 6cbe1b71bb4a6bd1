"""Warnings about the spec of a job."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.kube.batch.job_validation import COMPLETIONS_SOFT_LIMIT, INDEXED, PARALLELISM_SOFT_LIMIT
from pilothouse.kube.pod_templates import template_warnings
from pilothouse.machinery.field import Path
from pilothouse.machinery.objects import Json, number

_TOO_MANY = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
    "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)


def job_warnings(spec: Json, path: Path) -> Iterable[str]:
    too_many = number(spec, "completions") > COMPLETIONS_SOFT_LIMIT
    too_wide = number(spec, "parallelism") > PARALLELISM_SOFT_LIMIT
    if spec.get("completionMode") == INDEXED and too_many and too_wide:
        yield f"{path}: {_TOO_MANY}"
    yield from template_warnings(spec["template"], path.child("template"))
