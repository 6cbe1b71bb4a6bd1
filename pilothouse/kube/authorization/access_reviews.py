"""Access and rules reviews, answered by the server's authorizer."""

from __future__ import annotations

from pilothouse.apiserver.authz.interface import Authorizer, Decision
from pilothouse.apiserver.authz.rules import ResourceRule, rules_of
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.operations import Result, Validate
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.kube.authorization.attributes import Question, question_of, subject_of
from pilothouse.kube.authorization.validation import (
    validate_local_review,
    validate_self_review,
    validate_subject_review,
)
from pilothouse.machinery.errors import BadRequest, Invalid
from pilothouse.machinery.field import Errors
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json, part, text

GROUP = "authorization.k8s.io"

# Upstream's refusals do not name the kind.
_NAMELESS = GroupKind(GROUP, "")


class SubjectAccessReviews:
    """Reviews about anybody, anywhere."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        question = await ctx.weight.run(self._checked, ctx, obj)
        await validate(obj)
        answer = await self._authorizer.authorize(question.attributes)
        status: Json = {"allowed": answer.decision is Decision.ALLOW}
        parts = {
            "denied": answer.decision is Decision.DENY,
            "reason": answer.reason,
            "evaluationError": "; ".join(filter(None, (answer.error, question.error))),
        }
        obj["status"] = status | {name: value for name, value in parts.items() if value}
        return obj

    def _checked(self, ctx: RequestContext, obj: Json) -> Question:
        """Raises Invalid, BadRequest."""
        errors = list(self.validation(obj))
        if errors:
            raise Invalid.of(_NAMELESS, "", errors)
        return self.question(ctx, part(obj, "spec"))

    def validation(self, obj: Json) -> Errors:
        return validate_subject_review(obj)

    def question(self, ctx: RequestContext, spec: Json) -> Question:
        return question_of(spec, subject_of(spec))


class LocalSubjectAccessReviews(SubjectAccessReviews):
    """Reviews of any user in one namespace."""

    def validation(self, obj: Json) -> Errors:
        return validate_local_review(obj)

    def question(self, ctx: RequestContext, spec: Json) -> Question:
        if not ctx.namespace:
            raise BadRequest("namespace is required on this type: ")
        return super().question(ctx, spec)


class SelfSubjectAccessReviews(SubjectAccessReviews):
    """Reviews of the current user."""

    def validation(self, obj: Json) -> Errors:
        return validate_self_review(obj)

    def question(self, ctx: RequestContext, spec: Json) -> Question:
        return question_of(spec, ctx.user)


class SelfSubjectRulesReviews:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        namespace = text(obj, "spec", "namespace")
        if not namespace:
            raise BadRequest("no namespace on request")
        await validate(obj)
        rules = await rules_of(self._authorizer, ctx.user, namespace)
        status: Json = {
            "resourceRules": [_resource_rule(rule) for rule in rules.resources],
            "nonResourceRules": [
                {"verbs": list(rule.verbs), **({"nonResourceURLs": list(rule.paths)} if rule.paths else {})}
                for rule in rules.paths
            ],
            "incomplete": rules.incomplete,
        }
        return {
            "kind": obj["kind"],
            "apiVersion": obj["apiVersion"],
            "metadata": {},
            "spec": {},
            "status": status | ({"evaluationError": rules.error} if rules.error else {}),
        }


def _resource_rule(rule: ResourceRule) -> Json:
    parts: Json = {
        "verbs": list(rule.verbs),
        "apiGroups": list(rule.groups),
        "resources": list(rule.resources),
        "resourceNames": list(rule.names),
    }
    return {name: value for name, value in parts.items() if value or name == "verbs"}
