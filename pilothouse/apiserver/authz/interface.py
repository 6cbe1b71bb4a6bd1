"""The contract of an authorizer: from the attributes of a request to allow, deny or no opinion."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Request
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.status_error import StatusError, details_of


class Decision(Enum):
    """Allowed, denied, or left to the next authorizer; if nobody allows, the request is refused.

    >>> from pilothouse.apiserver import Decision
    >>> Decision.NO_OPINION.value
    'no opinion'
    """

    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


@dataclass(slots=True, unsafe_hash=True)
class Attributes:
    """Who wants to do what to which resource. Requests for no resource have only verb and path.

    Nobody changes them; they are not frozen because that makes them four times as dear, and every request has some.

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
    """An authorizer's decision and its reason, which refused users are told.

    >>> from pilothouse.apiserver import Answer, Decision
    >>> Answer(Decision.DENY, "it is Sunday").reason
    'it is Sunday'
    """

    decision: Decision
    reason: str = ""
    error: str = ""
    """The problem that kept an authorizer from deciding. Users who are not allowed are told of it."""


class Authorizer(Protocol):
    """Decides whether a request may be made.

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
    """Upstream's 403, which says who, what and where."""
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
    """No answer to a browser looks like HTML."""
    return message.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
