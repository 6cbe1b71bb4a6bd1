"""Access and rules reviews, validated and answered by the server's authorizer.

A review has exactly one of resource and non-resource attributes, and a subject.
"""

from __future__ import annotations

from pilothouse.apiserver.authz.interface import Authorizer, Decision, ResourceRule, rules_of
from pilothouse.apiserver.registry.operations import RequestContext, Result, Validate
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.kube.authorization.attributes import Question, question_of, subject_of
from pilothouse.kube.validation.internal_structs import TEXT, pointer, struct
from pilothouse.machinery import version_rules
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest, Invalid
from pilothouse.machinery.field import (
    Errors,
    Path,
    invalid,
    required,
    root,
)
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json, items, namespace_of, part, text
from pilothouse.machinery.schema.printing import object_meta_in_messages
from pilothouse.machinery.validation import labels

GROUP = "authorization.k8s.io"
# Upstream's refusals do not name the kind.
_NAMELESS = GroupKind(GROUP, "")

# Newer clients may send unknown operators.
_LENIENT = labels.LabelSelectorRules(allow_unknown_operator=True)
_shown_path = pointer(struct(Path=TEXT, Verb=TEXT))


@dataclass(frozen=True, slots=True)
class SubjectAccessReviews:
    """Reviews about anybody, anywhere."""

    authorizer: Authorizer

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        question = await ctx.weight.run(self._checked, ctx, obj)
        await validate(obj)
        answer = await self.authorizer.authorize(question.attributes)
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


@dataclass(frozen=True, slots=True)
class SelfSubjectRulesReviews:
    authorizer: Authorizer

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        namespace = text(obj, "spec", "namespace")
        if not namespace:
            raise BadRequest("no namespace on request")
        await validate(obj)
        rules = await rules_of(self.authorizer, ctx.user, namespace)
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


def validate_self_review(obj: Json) -> Errors:
    yield from _validate_question(part(obj, "spec"))
    yield from validate_selectors(part(obj, "spec").get("resourceAttributes"), root("spec", "resourceAttributes"))
    yield from _validate_metadata(obj)


def validate_subject_review(obj: Json) -> Errors:
    yield from _validate_subject_spec(part(obj, "spec"))
    yield from _validate_metadata(obj)


def validate_local_review(obj: Json) -> Errors:
    spec, path = part(obj, "spec"), root("spec")
    yield from _validate_subject_spec(spec)
    yield from _validate_metadata(obj, "namespace")
    resource = spec.get("resourceAttributes")
    if resource is not None and text(resource, "namespace") != namespace_of(obj):
        where = path.child("resourceAttributes", "namespace")
        yield invalid(where, text(resource, "namespace"), "must match metadata.namespace")
    if spec.get("nonResourceAttributes") is not None:
        shown = _shown_path(spec["nonResourceAttributes"])
        yield invalid(path.child("nonResourceAttributes"), shown, "disallowed on this kind of request")


def _validate_subject_spec(spec: Json) -> Errors:
    yield from _validate_question(spec)
    if not text(spec, "user") and not items(spec, "groups"):
        yield invalid(root("spec", "user"), text(spec, "user"), "at least one of user or group must be specified")
    yield from validate_selectors(spec.get("resourceAttributes"), root("spec", "resourceAttributes"))


def _validate_question(spec: Json) -> Errors:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    on_spec = version_rules.holds("DeclaredValidation")
    either = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    if resource is not None and path is not None:
        if on_spec:
            yield invalid(root("spec"), _shown_path(path), either)
        else:
            reason = "cannot be specified in combination with resourceAttributes"
            yield invalid(root("spec", "nonResourceAttributes"), _shown_path(path), reason)
    if resource is None and path is None:
        yield invalid(root("spec") if on_spec else root("spec", "resourceAttributes"), None, either)


def _validate_metadata(obj: Json, *allowed: str) -> Errors:
    meta = part(obj, "metadata")
    if any(value for field, value in meta.items() if field not in ("managedFields", *allowed)):
        yield invalid(
            root("metadata"),
            object_meta_in_messages(meta),
            "must be empty except for namespace" if allowed else "must be empty",
        )


def validate_selectors(resource: Json | None, path: Path) -> Errors:
    if resource is None:
        return
    for field, check in (
        ("fieldSelector", labels.validate_field_requirement),
        ("labelSelector", labels.validate_requirement),
    ):
        selector, where = resource.get(field), path.child(field)
        if selector is None:
            continue
        raw, requirements = text(selector, "rawSelector"), items(selector, "requirements")
        if raw and requirements:
            reason = "may not specified at the same time as requirements"
            yield invalid(where.child("rawSelector"), raw, reason)
        if not raw and not requirements:
            reason = f"when {where} is specified, requirements or rawSelector is required"
            yield required(where.child("requirements"), reason)
        for position, requirement in enumerate(requirements):
            yield from check(requirement, where.child("requirements").index(position), _LENIENT)
