"""Request matching: against rules, equivalent resources, and labels of the object and its namespace.

With matchPolicy Equivalent, a request for apps/v1 deployments matches a rule for apps/v1beta1. The Match then names
apps/v1beta1, the version for the webhook or policy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.matching.criteria import MatchCriteria
from pilothouse.apiserver.admission.matching.rules import RuleWithOperations
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupResource, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json, labels_of
from pilothouse.machinery.selectors.labels import Selector

GetNamespace: TypeAlias = Callable[[str], Awaitable[Json | None]]
"""Return a Namespace by name, or None."""

_NAMESPACES = GroupResource("", "namespaces")
_WRITES = (Operation.CREATE, Operation.UPDATE)
_EXEMPT = frozenset(
    ("admissionregistration.k8s.io", f"{how}{what}")
    for how in ("Validating", "Mutating")
    for what in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
)


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
