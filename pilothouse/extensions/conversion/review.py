"""ConversionReview: request, response, and the permitted changes of a webhook.

A webhook may change all fields except identity and metadata; of the metadata, it may change labels and annotations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pilothouse.machinery.field import Errors, root
from pilothouse.machinery.gofmt import go_type, quote
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of, namespace_of, uid_of
from pilothouse.machinery.status_error import aggregate
from pilothouse.machinery.validation.labels import validate_labels
from pilothouse.machinery.validation.object_meta import validate_annotations

GROUP = "apiextensions.k8s.io"
_KIND = "ConversionReview"
_VERSIONS = ("v1", "v1beta1")


class MalformedReview(ValueError):
    """The response is malformed; the text is upstream's."""


def review_version(versions: Sequence[str]) -> str:
    """Return the first review version supported by both sides. Raises MalformedReview."""
    for version in versions:
        if version in _VERSIONS:
            return version
    raise MalformedReview("no supported conversion review versions")


def new_review(version: str, objects: Sequence[Any], *, desired: str, uid: str) -> Json:
    return {
        "kind": _KIND,
        "apiVersion": f"{GROUP}/{version}",
        "request": {"uid": uid, "desiredAPIVersion": desired, "objects": list(objects)},
        "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
    }


def converted_objects(version: str, answer: Json, uid: str) -> list[Any]:
    """Return the converted objects. Raises MalformedReview. v1beta1 ignores type and uid of the response."""
    if version == "v1":
        _check_type(answer)
    response = answer.get("response")
    if not isinstance(response, dict):
        raise MalformedReview("no response provided")
    if version == "v1" and response.get("uid") != uid:
        raise MalformedReview(f"expected response.uid={quote(uid)}, got {quote(str(response.get('uid') or ''))}")
    _check_result(response.get("result"))
    objects = response.get("convertedObjects")
    return objects if isinstance(objects, list) else []


def _check_type(answer: Json) -> None:
    expected = GroupVersion(GROUP, "v1").kind(_KIND)
    api_version, kind = str(answer.get("apiVersion") or expected.api_version), str(answer.get("kind") or _KIND)
    if (api_version, kind) != (expected.api_version, _KIND):
        group, _, version = api_version.rpartition("/")
        got = GroupVersion(group, version).kind(kind)
        raise MalformedReview(f"expected webhook response of {expected}, got {got}")


def _check_result(result: Any) -> None:
    outcome = result if isinstance(result, dict) else {}
    if outcome.get("status") == "Success":
        return
    if outcome.get("message"):
        raise MalformedReview(str(outcome["message"]))
    raise MalformedReview(f"response.result.status was '{outcome.get('status') or ''}', not 'Success'")


class NotTheSame(ValueError):
    """The converted object has another identity than the original."""


class InvalidMetadata(ValueError):
    """The metadata of the converted object is malformed."""


def check_identity(original: Json, converted: Json) -> None:
    """Compare name, namespace and UID. Raises NotTheSame."""
    comparable = converted if isinstance(converted.get("metadata"), dict) else converted | {"metadata": {}}
    for field, of in (("name", name_of), ("namespace", namespace_of), ("UID", uid_of)):
        if of(original) != of(comparable):
            raise NotTheSame(f"must have the same {field}: {of(original)} != {of(comparable)}")


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
