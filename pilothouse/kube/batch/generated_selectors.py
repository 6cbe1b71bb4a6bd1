"""Selectors that the server made: the labels that belong to them must still be there."""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.kube.batch.job_defaults import CONTROLLER_UID_LABELS, JOB_NAME_LABELS
from pilothouse.kube.validation.label_selectors import selector_of, shown_labels, shown_selector
from pilothouse.machinery.field import Errors, invalid, required, root
from pilothouse.machinery.objects import Json, labels_of, name_of, uid_of

_LABELS = root("spec", "template", "metadata", "labels")
_NOT_GENERATED = "`selector` not auto-generated"


def validate_generated_selector(job: Json, *, prefixed: bool = True) -> Errors:
    """`prefixed` asks for the labels with a domain too, which jobs of old servers do not have."""
    spec = job["spec"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    expected = dict(_expected(job, 0))
    if prefixed:
        expected |= _expected(job, 1)
    for key, value in expected.items():
        labels = labels_of(spec["template"])
        if key not in labels:
            yield required(_LABELS.key(key), f"must be '{value}'")
        elif labels[key] != value:
            yield invalid(_LABELS.key(key), shown_labels(labels), f"must be '{value}'")
    selector = selector_of(spec["selector"])
    if selector is not None and not selector.matches(expected):
        yield invalid(root("spec", "selector"), shown_selector(spec["selector"]), _NOT_GENERATED)


def has_prefixed_labels(job: Json) -> bool:
    labels = labels_of(job["spec"]["template"])
    return JOB_NAME_LABELS[1] in labels and CONTROLLER_UID_LABELS[1] in labels


def _expected(job: Json, form: int) -> Mapping[str, str]:
    """The labels without (0) or with (1) a domain."""
    return {CONTROLLER_UID_LABELS[form]: uid_of(job), JOB_NAME_LABELS[form]: name_of(job)}
