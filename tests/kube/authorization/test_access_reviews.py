"""Access reviews: what is asked of the authorizer, what it answers, and which questions are refused."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.always import AlwaysAllow, AlwaysDeny, PrivilegedGroup
from pilothouse.apiserver.authz.interface import Answer, Attributes, Authorizer, Decision
from pilothouse.apiserver.authz.union import UnionAuthorizer
from pilothouse.apiserver.registry.interface import Creator
from pilothouse.apiserver.registry.operations import RequestContext
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.kube.authorization.access_reviews import (
    LocalSubjectAccessReviews,
    SelfSubjectAccessReviews,
    SelfSubjectRulesReviews,
    SubjectAccessReviews,
)
from pilothouse.machinery.errors import BadRequest, Invalid
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

ME = User("me", "7", ("ops",))
PODS: Json = {"verb": "get", "resource": "pods", "namespace": "n"}
PATH: Json = {"verb": "get", "path": "/a"}


class Deciding:
    """Answers as it was told, and remembers what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Attributes] = []

    async def authorize(self, attributes: Attributes) -> Answer:
        self.asked.append(attributes)
        return self.answer


async def allow(_: Json) -> None:
    """Admission has nothing to say here."""


async def create(storage: Creator, spec: Json, **metadata: Any) -> Json:
    ctx = RequestContext(
        metadata.get("namespace", ""), GroupResource("authorization.k8s.io", "x"), ME, warn=lambda text: None
    )
    obj = {"kind": "K", "apiVersion": "authorization.k8s.io/v1", "metadata": metadata, "spec": spec}
    result = await storage.create(ctx, obj, options=WriteOptions(), validate=allow)
    assert isinstance(result, dict)
    return result


async def refusals(storage: Creator, spec: Json, **metadata: Any) -> list[str]:
    with pytest.raises(Invalid) as refused:
        await create(storage, spec, **metadata)
    details = refused.value.details or {}
    return [f"{cause['field']}: {cause['message']}" for cause in details["causes"]]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer(Decision.ALLOW), {"allowed": True}),
        (Answer(Decision.ALLOW, "because"), {"allowed": True, "reason": "because"}),
        (Answer(Decision.NO_OPINION), {"allowed": False}),
        (Answer(Decision.DENY, "no"), {"allowed": False, "denied": True, "reason": "no"}),
    ],
)
async def test_the_authorizers_answer_is_the_status(answer: Answer, status: Json) -> None:
    review = await create(SelfSubjectAccessReviews(Deciding(answer)), {"resourceAttributes": PODS})
    assert review["status"] == status
    assert review["spec"] == {"resourceAttributes": PODS}


async def test_a_self_review_is_about_the_one_who_asks() -> None:
    authorizer = Deciding(Answer(Decision.ALLOW))
    await create(SelfSubjectAccessReviews(authorizer), {"resourceAttributes": PODS})
    await create(SelfSubjectAccessReviews(authorizer), {"nonResourceAttributes": PATH})
    about_pods = Attributes(ME, "get", is_resource=True, version="*", resource="pods", namespace="n")
    assert authorizer.asked == [about_pods, Attributes(ME, "get", path="/a")]


async def test_a_subject_review_is_about_the_subject() -> None:
    authorizer = Deciding(Answer(Decision.ALLOW))
    spec = {"user": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}, "nonResourceAttributes": PATH}
    await create(SubjectAccessReviews(authorizer), spec)
    (asked,) = authorizer.asked
    assert asked.user == User("u", "1", ("g",), {"k": ("v",)})


@pytest.mark.parametrize(
    ("selectors", "field", "label", "error"),
    [
        (
            {"fieldSelector": {"rawSelector": "a=b"}, "labelSelector": {"rawSelector": "x in (y)"}},
            "a=b",
            "x in (y)",
            "",
        ),
        (
            {"fieldSelector": {"requirements": [{"key": "a", "operator": "NotIn", "values": ["b,c"]}]}},
            "a!=b\\,c",
            "",
            "",
        ),
        (
            {"labelSelector": {"requirements": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "New"}]}},
            "",
            "a",
            "spec.resourceAttributes.labelSelector partially ignored due to parse error",
        ),
        (
            {
                "fieldSelector": {"requirements": [{"key": "a", "operator": "Exists"}]},
                "labelSelector": {"rawSelector": "!!"},
            },
            "",
            "",
            "spec.resourceAttributes.fieldSelector ignored due to parse error; "
            "spec.resourceAttributes.labelSelector ignored due to parse error",
        ),
    ],
)
async def test_a_selector_that_cannot_be_read_is_left_out_and_reported(
    selectors: Json, field: str, label: str, error: str
) -> None:
    authorizer = Deciding(Answer(Decision.NO_OPINION))
    review = await create(SelfSubjectAccessReviews(authorizer), {"resourceAttributes": {**PODS, **selectors}})
    assert (authorizer.asked[0].field_selector, authorizer.asked[0].label_selector) == (field, label)
    assert review["status"].get("evaluationError", "") == error


async def test_a_question_is_about_a_resource_or_a_path() -> None:
    storage = SelfSubjectAccessReviews(AlwaysAllow())
    assert await refusals(storage, {}) == [
        "spec.resourceAttributes: Invalid value: null: "
        "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    ]
    both = {"resourceAttributes": PODS, "nonResourceAttributes": PATH}
    meta = {"labels": {"b": "c", "a": "b"}, "ownerReferences": [], "name": "mine"}
    assert await refusals(storage, both, **meta) == [
        'spec.nonResourceAttributes: Invalid value: {"Path":"/a","Verb":"get"}: '
        "cannot be specified in combination with resourceAttributes",
        'metadata: Invalid value: {"name":"mine","labels":{"a":"b","b":"c"}}: must be empty',
    ]


async def test_a_refusal_does_not_name_the_kind() -> None:
    with pytest.raises(Invalid) as refused:
        await create(SubjectAccessReviews(AlwaysAllow()), {"resourceAttributes": PODS})
    assert str(refused.value.message) == (
        '.authorization.k8s.io "" is invalid: spec.user: Invalid value: "": '
        "at least one of user or group must be specified"
    )


async def test_a_selector_says_something_in_one_way() -> None:
    selectors = {
        "fieldSelector": {},
        "labelSelector": {"rawSelector": "a", "requirements": [{"key": "b", "operator": "In"}]},
    }
    assert await refusals(SelfSubjectAccessReviews(AlwaysAllow()), {"resourceAttributes": {**PODS, **selectors}}) == [
        "spec.resourceAttributes.fieldSelector.requirements: Required value: when "
        "spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required",
        'spec.resourceAttributes.labelSelector.rawSelector: Invalid value: "a": '
        "may not specified at the same time as requirements",
        "spec.resourceAttributes.labelSelector.requirements[0].values: Required value: "
        "must be specified when `operator` is 'In' or 'NotIn'",
    ]


async def test_a_local_review_stays_in_its_namespace() -> None:
    storage = LocalSubjectAccessReviews(AlwaysAllow())
    spec = {"user": "u", "resourceAttributes": PODS}
    review = await create(storage, spec, namespace="n")
    assert review["status"] == {"allowed": True}
    other = {"user": "u", "resourceAttributes": {**PODS, "namespace": "other"}}
    assert await refusals(storage, other, namespace="n") == [
        'spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace'
    ]
    assert await refusals(storage, {"user": "u", "nonResourceAttributes": PATH}, namespace="n") == [
        'spec.nonResourceAttributes: Invalid value: {"Path":"/a","Verb":"get"}: disallowed on this kind of request'
    ]


ALL: Json = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
NONE: Json = {"resourceRules": [], "nonResourceRules": [], "incomplete": False}


@pytest.mark.parametrize(
    ("authorizer", "status"),
    [
        (AlwaysAllow(), ALL),
        (AlwaysDeny(), NONE),
        (UnionAuthorizer([PrivilegedGroup(), AlwaysDeny(), AlwaysAllow()]), ALL),
        (PrivilegedGroup(), NONE),
    ],
)
async def test_rules_come_from_the_authorizers_that_have_any(authorizer: Authorizer, status: Json) -> None:
    review = await create(SelfSubjectRulesReviews(authorizer), {"namespace": "n"})
    assert review["status"] == status
    assert review["spec"] == {}


async def test_rules_are_asked_for_in_a_namespace() -> None:
    with pytest.raises(BadRequest, match="no namespace on request"):
        await create(SelfSubjectRulesReviews(AlwaysAllow()), {})
