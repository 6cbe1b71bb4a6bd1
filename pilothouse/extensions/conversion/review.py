"""ConversionReview: request and response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json

GROUP = "apiextensions.k8s.io"
_KIND = "ConversionReview"
_VERSIONS = ("v1", "v1beta1")


class MalformedReview(ValueError):
    """The response is malformed; the text is upstream's."""


def review_version(wanted: Sequence[str]) -> str:
    """Return the first review version that both sides support. Raises MalformedReview."""
    for version in wanted:
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
    found = response.get("convertedObjects")
    return found if isinstance(found, list) else []


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
