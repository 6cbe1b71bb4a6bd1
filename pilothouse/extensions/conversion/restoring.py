"""Permitted changes of a conversion webhook: all fields except identity and metadata; of the metadata, labels and
annotations."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.field import Errors, root
from pilothouse.machinery.govalue import go_type
from pilothouse.machinery.objects import Json, name_of, namespace_of, uid_of
from pilothouse.machinery.status_error import aggregate
from pilothouse.machinery.validation.labels import validate_labels
from pilothouse.machinery.validation.object_meta import validate_annotations


class NotTheSame(ValueError):
    """The converted object has another identity than the original."""


class InvalidMetadata(ValueError):
    """The metadata of the converted object is malformed."""


def check_identity(original: Json, converted: Json) -> None:
    """Compare name, namespace and UID. Raises NotTheSame."""
    known = converted if isinstance(converted.get("metadata"), dict) else converted | {"metadata": {}}
    for what, of in (("name", name_of), ("namespace", namespace_of), ("UID", uid_of)):
        if of(original) != of(known):
            raise NotTheSame(f"must have the same {what}: {of(original)} != {of(known)}")


def restore_metadata(original: Json, converted: Json) -> None:
    """Restore the original's metadata except labels and annotations. Raises InvalidMetadata."""
    if "metadata" not in converted:
        raise InvalidMetadata("missing metadata in converted object")
    answered = converted["metadata"]
    if not isinstance(answered, dict):
        raise InvalidMetadata(f"invalid metadata of type {_type(answered)} in converted object")
    restored = dict(original.get("metadata") or {})
    for field in ("labels", "annotations"):
        before = restored.pop(field, None)
        if answered.get(field) is not None:
            restored[field] = _checked(field, answered[field], before)
    converted["metadata"] = restored


def _checked(field: str, answered: Any, original: Any) -> dict[str, str]:
    if not isinstance(answered, dict):
        raise InvalidMetadata(f"invalid metadata.{field} of type {_type(answered)} in converted object")
    for key, value in answered.items():
        if not isinstance(value, str):
            what = f"metadata.{field}[{key}] must be a string, but is {_type(value)} in converted object"
            raise InvalidMetadata(what)
    if answered != (original or {}):
        problems = [str(error) for error in _rules(field, answered)]
        if problems:
            raise InvalidMetadata(aggregate(problems))
    return answered


def _rules(field: str, values: dict[str, str]) -> Errors:
    if field == "labels":
        return validate_labels(values, root("metadata", "labels"))
    return validate_annotations(values, root("metadata", "annotation"))


def _type(value: Any) -> str:
    return "<nil>" if value is None else go_type(value)
