"""Reviews are answered in the form that kube-apiserver demands: its own reader of responses checks each answer."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from pilothouse.apiserver.admission.webhook import response as apiserver
from pilothouse.builder import Errors, forbidden
from pilothouse.errors import Conflict
from pilothouse.extensions.conversion import review as extensions
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.json_patch import decode
from pilothouse.operator.reviews import (
    AdmissionHandler,
    Conversion,
    ConversionHandler,
    MalformedReview,
    ObjectForm,
    json_patch,
)
from pilothouse.operator.webhooks import AdmissionRequest, Denied

BACKUP: Json = {"apiVersion": "demo.example.com/v1", "kind": "Backup", "metadata": {"name": "a"}, "spec": {"keep": 1}}
KIND = GroupKind("demo.example.com", "Backup")


async def ask(
    method: Callable[..., Any], *, mutating: bool = False, new: Json | None = BACKUP, old: Json | None = None
) -> apiserver.AdmissionResponse:
    """Review as kube-apiserver does, and return the response that it reads."""
    request = {"uid": "7", "operation": "CREATE", "userInfo": {"username": "ann"}, "object": new, "oldObject": old}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    answer = await AdmissionHandler(method, ObjectForm(), KIND, mutating=mutating).review(body)
    asked = apiserver.AdmissionReview("7", "v1", body)
    return apiserver.read_response(asked, orjson.loads(orjson.dumps(answer)), mutating=mutating)


async def test_a_validator_that_returns_nothing_allows() -> None:
    assert await ask(lambda backup: None) == apiserver.AdmissionResponse(True)


async def test_a_denial_has_message_code_and_reason() -> None:
    def check(backup: Json) -> None:
        raise Denied("closed on Sundays", code=409, reason="Conflict")

    response = await ask(check)
    assert not response.allowed
    assert response.result == {
        "metadata": {},
        "status": "Failure",
        "message": "closed on Sundays",
        "reason": "Conflict",
        "code": 409,
    }


async def test_an_api_error_is_a_denial_with_its_status() -> None:
    async def check(backup: Json) -> None:
        raise Conflict("changed meanwhile")

    response = await ask(check)
    assert response.result is not None
    assert (response.allowed, response.result["code"], response.result["reason"]) == (False, 409, "Conflict")


async def test_yielded_field_errors_are_causes_of_an_invalid_object() -> None:
    def check(backup: Json, old: Json) -> Errors:
        if backup["spec"] != old["spec"]:
            yield forbidden("spec.keep", "field is immutable")

    response = await ask(check, old={**BACKUP, "spec": {"keep": 2}})
    assert response.result is not None
    message = 'Backup.demo.example.com "a" is invalid: spec.keep: Forbidden: field is immutable'
    assert (response.result["code"], response.result["message"]) == (422, message)
    assert [cause["field"] for cause in response.result["details"]["causes"]] == ["spec.keep"]
    assert (await ask(check, old=BACKUP)).allowed


async def test_the_deleted_object_is_reviewed() -> None:
    seen = []
    await ask(lambda backup, old: seen.append((backup, old)), new=None, old=BACKUP)
    assert seen == [(BACKUP, BACKUP)]


async def test_warnings_and_audit_annotations_are_passed_on() -> None:
    def check(backup: Json, request: AdmissionRequest) -> None:
        request.warn(f"{request.user} should know")
        request.audit_annotations["checked"] = "yes"

    response = await ask(check)
    assert (response.warnings, response.audit_annotations) == (("ann should know",), {"checked": "yes"})


async def test_changes_in_place_become_a_json_patch() -> None:
    def default(backup: Json) -> None:
        backup["spec"]["keep"] = 7
        backup["metadata"]["labels"] = {"a/b": "c~d"}

    response = await ask(default, mutating=True)
    assert response.patch_type == "JSONPatch"
    patched = decode(orjson.loads(response.patch)).apply(orjson.loads(orjson.dumps(BACKUP)))
    assert patched["spec"] == {"keep": 7}
    assert patched["metadata"] == {"name": "a", "labels": {"a/b": "c~d"}}


async def test_a_returned_object_replaces_the_reviewed_one() -> None:
    response = await ask(lambda backup: {**backup, "spec": {}}, mutating=True)
    assert orjson.loads(response.patch) == [{"op": "remove", "path": "/spec/keep"}]


async def test_no_change_means_no_patch() -> None:
    response = await ask(lambda backup: None, mutating=True)
    assert (response.allowed, response.patch, response.patch_type) == (True, b"", "")


async def test_a_failing_handler_raises_so_that_the_failure_policy_decides() -> None:
    with pytest.raises(KeyError):
        await ask(lambda backup: backup["nothing"])


async def test_a_handler_that_returns_something_else_is_reported() -> None:
    with pytest.raises(TypeError, match="must return field errors, not 'no'"):
        await ask(lambda backup: ["no"])


@pytest.mark.parametrize("body", [[], {}, {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}])
async def test_a_body_that_is_no_review_is_malformed(body: Any) -> None:
    with pytest.raises(MalformedReview):
        await AdmissionHandler(lambda obj: None, ObjectForm(), KIND, mutating=False).review(body)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": [1, 2]}, {"a": [1, 3]}),
        ({"a": [1, 2]}, {"a": [1]}),
        ({"a": {"b": None}}, {"a": {}}),
        ({"a": {"~/": 1}}, {"a": {"~/": {"x": []}}}),
        ({"a": []}, {"b": []}),
    ],
)
def test_a_patch_leads_from_one_object_to_the_other(before: Json, after: Json) -> None:
    patched = decode(list(json_patch(before, after))).apply(orjson.loads(orjson.dumps(before)))
    assert orjson.dumps(patched, option=orjson.OPT_SORT_KEYS) == orjson.dumps(after, option=orjson.OPT_SORT_KEYS)


CHAIN = ConversionHandler(
    {
        KIND: {
            ("v1alpha1", "v1beta1"): Conversion(lambda obj: {**obj, "spec": {"keeps": obj["spec"]["kept"]}}),
            ("v1beta1", "v1"): Conversion(lambda obj: {"spec": {"keep": obj["spec"]["keeps"]}}),
            ("v1", "v1beta1"): Conversion(lambda obj: {**obj, "metadata": {"labels": {"was": "v1"}, "name": "other"}}),
        }
    }
)
OLD: Json = {
    "apiVersion": "demo.example.com/v1alpha1",
    "kind": "Backup",
    "metadata": {"name": "a", "uid": "1"},
    "spec": {"kept": 3},
}


async def convert(obj: Json, desired: str) -> list[Any]:
    body = extensions.new_review("v1", [obj], desired=f"demo.example.com/{desired}", uid="9")
    answer = orjson.loads(orjson.dumps(await CHAIN.review(body)))
    return extensions.converted_objects("v1", answer, "9")


async def test_conversions_are_chained_and_keep_the_metadata() -> None:
    [converted] = await convert(OLD, "v1")
    assert converted == {**OLD, "apiVersion": "demo.example.com/v1", "spec": {"keep": 3}}


async def test_a_conversion_may_change_labels_and_nothing_else_of_the_metadata() -> None:
    [converted] = await convert({**OLD, "apiVersion": "demo.example.com/v1"}, "v1beta1")
    assert converted["metadata"] == {"name": "a", "uid": "1", "labels": {"was": "v1"}}


async def test_an_object_that_cannot_be_converted_is_a_failure_with_a_message() -> None:
    with pytest.raises(extensions.MalformedReview, match="Backup cannot be converted from v1 to v1alpha1"):
        await convert({**OLD, "apiVersion": "demo.example.com/v1"}, "v1alpha1")


async def test_a_patch_is_sent_in_base64() -> None:
    handler = AdmissionHandler(lambda backup: {**backup, "spec": {"keep": 2}}, ObjectForm(), KIND, mutating=True)
    request = {"uid": "7", "object": BACKUP}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    response = (await handler.review(body))["response"]
    assert orjson.loads(base64.b64decode(response["patch"])) == [{"op": "replace", "path": "/spec/keep", "value": 2}]
