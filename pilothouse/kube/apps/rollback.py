"""The annotation that stands for the rollback field which deployments had in versions before apps/v1."""

from __future__ import annotations

from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.field import Errors, Path
from pilothouse.machinery.integers import parse_int64
from pilothouse.machinery.objects import Json, annotations_of, metadata
from pilothouse.machinery.validation.object_meta import validate_nonnegative_field

ROLLBACK_TO = "deprecated.deployment.rollback.revision"


def default_rollback(obj: Json) -> None:
    """Brings the annotation into its canonical form, or drops it where it is empty. Raises BadRequest."""
    annotations = annotations_of(obj)
    if ROLLBACK_TO not in annotations:
        return
    text = annotations.pop(ROLLBACK_TO)
    if text:
        try:
            annotations[ROLLBACK_TO] = str(parse_int64(text))
        except ValueError as error:
            why = f"failed to parse annotation[{ROLLBACK_TO}]={text} as int64: {error}"
            raise BadRequest(f'Deployment in version "v1" cannot be handled as a Deployment: {why}') from None
    elif not annotations:
        metadata(obj).pop("annotations")


def carry_rollback(obj: Json, old: Json) -> None:
    """Keep the stored rollback on a write of the status: it counts as part of the spec."""
    annotations = {key: value for key, value in annotations_of(obj).items() if key != ROLLBACK_TO}
    if ROLLBACK_TO in annotations_of(old):
        annotations[ROLLBACK_TO] = annotations_of(old)[ROLLBACK_TO]
    metadata(obj).pop("annotations", None)
    if annotations:
        metadata(obj)["annotations"] = annotations


def validate_rollback(obj: Json, path: Path) -> Errors:
    if revision := annotations_of(obj).get(ROLLBACK_TO):
        yield from validate_nonnegative_field(int(revision), path.child("version"))
