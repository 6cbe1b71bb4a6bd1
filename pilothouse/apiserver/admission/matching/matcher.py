"""Matching of requests: against rules, also through equivalent resources, and against the labels of what is written.

A request for apps/v1 deployments matches a rule for apps/v1beta1 where the criteria say Equivalent; the Match then
names apps/v1beta1, the version in which the webhook or the policy wants to see the object.
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
"""A Namespace object by its name; None where there is none."""

_NAMESPACES = GroupResource("", "namespaces")
_WRITES = (Operation.CREATE, Operation.UPDATE)
_EXEMPT = frozenset(
    ("admissionregistration.k8s.io", f"{how}{what}")
    for how in ("Validating", "Mutating")
    for what in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
)


def is_exempt(attributes: Attributes) -> bool:
    """Webhooks and policies have no say in what configures them, so that a wrong one can be taken back."""
    return (attributes.kind.group, attributes.kind.kind) in _EXEMPT


@dataclass(frozen=True, slots=True)
class Match:
    """The resource that the rule names, and the kind in which its objects are to be sent."""

    resource: GroupVersionResource
    kind: GroupVersionKind


class Matcher:
    def __init__(self, get_namespace: GetNamespace) -> None:
        self.get_namespace = get_namespace

    async def matches(self, attributes: Attributes, criteria: MatchCriteria) -> Match | None:
        """Raises NotFound where the criteria ask for labels of a namespace that is not there."""
        match = _match_rules(attributes, criteria)
        if match is None or not _selects_object(attributes, criteria.object_selector):
            return None
        return match if await self._selects_namespace(attributes, criteria.namespace_selector) else None

    async def _selects_namespace(self, attributes: Attributes, selector: Selector) -> bool:
        """Whether the selector matches the object's namespace, or the object itself where it is a namespace.

        Other cluster-scoped objects always match.
        """
        if selector.empty or (not attributes.namespace and attributes.resource.resource != "namespaces"):
            return True
        return selector.matches(labels_of(await self._namespace(attributes)))

    async def _namespace(self, attributes: Attributes) -> Json:
        """The namespace as it will be, where the request is about a namespace."""
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
    """Return the first match: of the request's own resource before any equivalent one, then of earlier rules."""
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
    """Either as it was or as it will be. What has no metadata has no labels to be selected by."""
    if selector.empty:
        return True
    objects = (attributes.obj, attributes.old)
    return any(obj is not None and "metadata" in obj and selector.matches(labels_of(obj)) for obj in objects)
