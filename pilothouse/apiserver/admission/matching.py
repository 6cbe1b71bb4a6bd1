"""Request matching of webhooks and policies: rules, equivalent resources, and labels of the object and its namespace.

Criteria are compiled once per configuration. With matchPolicy Equivalent, a request for apps/v1 deployments matches a
rule for apps/v1beta1. The Match then names apps/v1beta1, the version for the webhook or policy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupResource, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json, labels_of
from pilothouse.machinery.selectors.labels import EVERYTHING, Selector, from_label_selector

_ANY = "*"
_NAMESPACES_V1 = GroupVersionResource("", "v1", "namespaces")


@dataclass(frozen=True, slots=True)
class RuleWithOperations:
    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """(resource, subresource) pairs; either may be the wildcard, and an empty subresource means the resource itself."""
    scope: str = _ANY
    names: frozenset[str] = frozenset()
    """Object names; empty matches all names."""

    @classmethod
    def of(cls, rule: Json) -> RuleWithOperations:
        parts = (resource.partition("/") for resource in rule.get("resources") or ())
        return cls(
            operations=frozenset(rule.get("operations") or ()),
            groups=frozenset(rule.get("apiGroups") or ()),
            versions=frozenset(rule.get("apiVersions") or ()),
            resources=tuple((resource, subresource) for resource, _, subresource in parts),
            scope=rule.get("scope") or _ANY,
            names=frozenset(rule.get("resourceNames") or ()),
        )

    def matches(self, attributes: Attributes, resource: GroupVersionResource) -> bool:
        """Return whether the rule matches; `resource` is the request's resource or an equivalent."""
        return (
            _includes(self.operations, attributes.operation.value)
            and _includes(self.groups, resource.group)
            and _includes(self.versions, resource.version)
            and any(
                wanted in (_ANY, resource.resource) and wanted_subresource in (_ANY, attributes.subresource)
                for wanted, wanted_subresource in self.resources
            )
            and self._in_scope(attributes, resource)
            and (not self.names or attributes.name in self.names)
        )

    def _in_scope(self, attributes: Attributes, resource: GroupVersionResource) -> bool:
        """Return whether the scope matches. Namespaces are cluster-scoped, although their requests carry a
        namespace."""
        if self.scope == _ANY:
            return True
        namespaced = bool(attributes.namespace) and resource != _NAMESPACES_V1
        return self.scope == ("Namespaced" if namespaced else "Cluster")


def rules_of(rules: Iterable[Json] | None) -> tuple[RuleWithOperations, ...]:
    return tuple(RuleWithOperations.of(rule) for rule in rules or ())


def _includes(items: frozenset[str], wanted: str) -> bool:
    return wanted in items or _ANY in items


@dataclass(frozen=True, slots=True)
class MatchCriteria:
    rules: tuple[RuleWithOperations, ...]
    """Without rules, nothing matches unless `without_rules`."""
    excluded: tuple[RuleWithOperations, ...] = ()
    namespace_selector: Selector = EVERYTHING
    object_selector: Selector = EVERYTHING
    equivalent: bool = False
    """Whether rules also match requests for equivalent resources (matchPolicy Equivalent)."""
    without_rules: bool = False
    """Whether an empty rule list matches everything."""

    @classmethod
    def of_webhook(cls, webhook: Json) -> MatchCriteria:
        """Compile the criteria of a webhook. Raises InvalidSelector."""
        return cls(
            rules=rules_of(webhook.get("rules")),
            namespace_selector=from_label_selector(webhook.get("namespaceSelector")),
            object_selector=from_label_selector(webhook.get("objectSelector")),
            equivalent=webhook.get("matchPolicy") == "Equivalent",
        )

    @classmethod
    def of_match_resources(cls, resources: Json) -> MatchCriteria:
        """Compile a policy's matchConstraints or a binding's matchResources. Raises InvalidSelector."""
        rules = rules_of(resources.get("resourceRules"))
        return cls(
            rules=rules,
            excluded=rules_of(resources.get("excludeResourceRules")),
            namespace_selector=from_label_selector(resources.get("namespaceSelector")),
            object_selector=from_label_selector(resources.get("objectSelector")),
            equivalent=resources.get("matchPolicy") == "Equivalent",
            without_rules=not rules,
        )


GetNamespace: TypeAlias = Callable[[str], Awaitable[Json | None]]
"""Return a Namespace by name, or None."""

_NAMESPACES = GroupResource("", "namespaces")
_WRITES = (Operation.CREATE, Operation.UPDATE)
_EXEMPT = frozenset(
    ("admissionregistration.k8s.io", f"{how}{what}")
    for how in ("Validating", "Mutating")
    for what in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
)


REVIEWS = frozenset(
    (
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    )
)
"""Authorization and authentication reviews, as (group, resource): exempt from all policies, and from all webhooks with
the gate ExcludeAdmissionWebhookVirtualResources."""


def is_review(attributes: Attributes) -> bool:
    return (attributes.resource.group, attributes.resource.resource) in REVIEWS


def is_exempt(attributes: Attributes) -> bool:
    """Return whether the object is admission configuration: exempt, so that a wrong webhook or policy can be
    removed."""
    return (attributes.kind.group, attributes.kind.kind) in _EXEMPT


@dataclass(frozen=True, slots=True)
class Match:
    """A match: the resource of the rule, and the kind in which objects are sent."""

    resource: GroupVersionResource
    kind: GroupVersionKind


class Matcher:
    def __init__(self, get_namespace: GetNamespace) -> None:
        self.get_namespace = get_namespace

    async def matches(self, attributes: Attributes, criteria: MatchCriteria) -> Match | None:
        """Return the match, or None. Raises NotFound if a namespace selector needs a missing namespace."""
        match = _match_rules(attributes, criteria)
        if match is None or not _selects_object(attributes, criteria.object_selector):
            return None
        return match if await self._selects_namespace(attributes, criteria.namespace_selector) else None

    async def _selects_namespace(self, attributes: Attributes, selector: Selector) -> bool:
        """Return whether the selector matches the object's namespace, or the object itself if it is a Namespace.

        Other cluster-scoped objects always match.
        """
        if selector.empty or (not attributes.namespace and attributes.resource.resource != "namespaces"):
            return True
        return selector.matches(labels_of(await self._namespace(attributes)))

    async def _namespace(self, attributes: Attributes) -> Json:
        """Return the namespace of the request; for requests on a Namespace, the new object."""
        if (
            attributes.operation in _WRITES
            and attributes.resource.resource == "namespaces"
            and not attributes.subresource
        ):
            return attributes.obj or {}
        found = await self.get_namespace(attributes.namespace)
        if found is None:
            raise NotFound.of(_NAMESPACES, attributes.namespace)
        return found


def _match_rules(attributes: Attributes, criteria: MatchCriteria) -> Match | None:
    if criteria.excluded and _match_any(attributes, criteria.excluded, equivalent=criteria.equivalent):
        return None
    if criteria.without_rules:
        return Match(attributes.resource, attributes.kind)
    return _match_any(attributes, criteria.rules, equivalent=criteria.equivalent)


def _match_any(attributes: Attributes, rules: tuple[RuleWithOperations, ...], *, equivalent: bool) -> Match | None:
    """Return the first match: the request's own resource takes precedence over equivalents, then earlier rules."""
    if any(rule.matches(attributes, attributes.resource) for rule in rules):
        return Match(attributes.resource, attributes.kind)
    if not equivalent:
        return None
    forms = attributes.equivalents.forms(attributes.resource, attributes.subresource)
    for rule in rules:
        for form in forms:
            if form.resource != attributes.resource and rule.matches(attributes, form.resource):
                return Match(form.resource, form.kind)
    return None


def _selects_object(attributes: Attributes, selector: Selector) -> bool:
    """Return whether the selector matches the old or new object. Objects without metadata do not match."""
    if selector.empty:
        return True
    objects = (attributes.obj, attributes.old)
    return any(obj is not None and "metadata" in obj and selector.matches(labels_of(obj)) for obj in objects)
