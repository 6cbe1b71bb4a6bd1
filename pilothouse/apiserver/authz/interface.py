"""The contract of authorizers: map request attributes to allow, deny or no opinion, and list the rules of a user."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Protocol, runtime_checkable

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Request
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.status_error import StatusError, details_of


class Decision(Enum):
    """Allow, deny, or defer to the next authorizer; requests without an allow are rejected.

    >>> from pilothouse.apiserver import Decision
    >>> Decision.NO_OPINION.value
    'no opinion'
    """

    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


@dataclass(slots=True, unsafe_hash=True)
class Attributes:
    """Attributes of a request: user, verb and resource. Non-resource requests have only verb and path.

    Treat as immutable; not frozen because that quadruples construction cost on every request.

    >>> from pilothouse.apiserver import Attributes, User
    >>> Attributes(User("jane"), "get", path="/version").is_resource
    False
    """

    user: User
    verb: str
    path: str = ""
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An authorizer's decision and its reason, shown to rejected users.

    >>> from pilothouse.apiserver import Answer, Decision
    >>> Answer(Decision.DENY, "it is Sunday").reason
    'it is Sunday'
    """

    decision: Decision
    reason: str = ""
    error: str = ""
    """Error that prevented a decision; shown to rejected users."""


class Authorizer(Protocol):
    """Authorizes requests.

    >>> from pilothouse.apiserver import Answer, Attributes, Authorizer, Decision, User
    >>> class ReadersOnly:
    ...     async def authorize(self, attributes: Attributes) -> Answer:
    ...         reads = attributes.verb in ("get", "list", "watch")
    ...         return Answer(Decision.ALLOW if reads else Decision.NO_OPINION)
    >>> authorizer: Authorizer = ReadersOnly()
    >>> (await authorizer.authorize(Attributes(User("jane"), "delete"))).decision.name
    'NO_OPINION'
    """

    async def authorize(self, attributes: Attributes) -> Answer: ...


def attributes_of(request: Request) -> Attributes:
    info = request.info
    return Attributes(
        user=request.user,
        verb=info.verb,
        path=info.path,
        is_resource=info.is_resource,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=info.name,
        field_selector=info.field_selector,
        label_selector=info.label_selector,
    )


def forbidden(attributes: Attributes, reason: str) -> StatusError:
    """Build upstream's 403 with user, verb and resource."""
    user = quote(attributes.user.name)
    if not attributes.is_resource:
        what = sanitized(f"User {user} cannot {attributes.verb} path {quote(attributes.path)}")
        return Forbidden(f"forbidden: {what}{_reason_suffix(reason)}", details={})
    target = GroupResource(attributes.group, attributes.resource)
    named = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    what = f"User {user} cannot {attributes.verb} resource {quote(named)} in API group {quote(attributes.group)}"
    where = f" in the namespace {quote(attributes.namespace)}" if attributes.namespace else " at the cluster scope"
    error = Forbidden.of(target, attributes.name, sanitized(what + where) + _reason_suffix(reason))
    error.details = details_of(target, attributes.name)
    return error


def _reason_suffix(reason: str) -> str:
    return f": {reason}" if reason else ""


def sanitized(message: str) -> str:
    """Escape HTML, so that browsers do not render responses as HTML."""
    return message.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@dataclass(frozen=True, slots=True)
class ResourceRule:
    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NonResourceRule:
    verbs: tuple[str, ...]
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    resources: tuple[ResourceRule, ...] = ()
    paths: tuple[NonResourceRule, ...] = ()
    incomplete: bool = False
    """Whether the user may have further permissions."""
    error: str = ""


NO_RULES = Rules()
ALL_RULES = Rules((ResourceRule(("*",), ("*",), ("*",)),), (NonResourceRule(("*",), ("*",)),))


@runtime_checkable
class RuleResolver(Protocol):
    """An authorizer that can list the permissions of a user in a namespace."""

    async def rules_for(self, user: User, namespace: str) -> Rules: ...


async def rules_of(authorizer: object, user: User, namespace: str) -> Rules:
    """Return the user's rules; empty for authorizers without rules."""
    return await authorizer.rules_for(user, namespace) if isinstance(authorizer, RuleResolver) else NO_RULES


def union_of_rules(all_rules: Iterable[Rules]) -> Rules:
    found = list(all_rules)
    return Rules(
        resources=tuple(rule for rules in found for rule in rules.resources),
        paths=tuple(rule for rules in found for rule in rules.paths),
        incomplete=any(rules.incomplete for rules in found),
        error=", ".join(rules.error for rules in found if rules.error),
    )
