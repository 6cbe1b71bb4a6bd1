"""Pod templates as workloads hold them: their defaults, what is wrong with them, and what users should be told."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.kube.core.pods.defaults.pod import default_pod_template
from pilothouse.kube.core.pods.validation.annotations import validate_pod_annotations
from pilothouse.kube.core.pods.validation.options_from_stored import options_for_template
from pilothouse.kube.core.pods.validation.pod import validate_pod_template
from pilothouse.kube.core.pods.warnings.pod import pod_template_warnings
from pilothouse.machinery.field import Errors, Path
from pilothouse.machinery.objects import Json, annotations_of

__all__ = ["default_pod_template", "template_warnings", "validate_template", "validate_template_annotations"]


def validate_template(template: Json, path: Path, old: Json | None = None) -> Errors:
    """`old` is the stored template, whose faults an update may keep."""
    return validate_pod_template(template, path, options_for_template(old))


def validate_template_annotations(template: Json, path: Path, old: Json | None = None) -> Errors:
    """Validate the annotations that mean something to the server, and nothing else."""
    spec = template.get("spec") or {}
    return validate_pod_annotations(annotations_of(template), spec, path, options_for_template(old))


def template_warnings(template: Json | None, path: Path) -> Iterable[str]:
    return pod_template_warnings(template, path) if template else ()
