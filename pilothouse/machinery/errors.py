"""API errors of rejected requests (4xx): each is a `Status` with upstream's code, reason, message and details.

The server raises these errors and one filter serialises them. The client parses a Status and raises the same class:

    raise NotFound.of(GroupResource("apps", "deployments"), "web")  → 404 deployments.apps "web" not found
    except NotFound: ...                                            → on either side of the wire
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pilothouse.machinery.field import (
    FieldError,
    in_order_of_report,
)
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupKind, GroupResource
from pilothouse.machinery.status_error import NO_RESOURCE, StatusError, aggregate, details_of

MOST_ERRORS = 10_000
"""Maximum errors per response: otherwise 3 MB of invalid values would produce a response of more than 100 MB."""


class BadRequest(StatusError):
    """The request is malformed (400).

    >>> from pilothouse.errors import BadRequest
    >>> try:
    ...     await client.request("POST", "/api/v1/namespaces", body={"kind": "Pod", "apiVersion": "v1"})
    ... except BadRequest as error:
    ...     print(error.code, error.reason)
    400 BadRequest
    """

    reason, code = "BadRequest", 400


class Unauthorized(StatusError):
    """The request is not authenticated (401).

    >>> from pilothouse.errors import Unauthorized
    >>> (await api.request("GET", "/api/v1/pods", authorization="Bearer wrong")).json["reason"] == Unauthorized.reason
    True
    """

    reason, code = "Unauthorized", 401

    def __init__(self, message: str = "Unauthorized", **rest: Any) -> None:
        super().__init__(message, **rest)


class Forbidden(StatusError):
    """The user is not authorized for the request (403).

    >>> from pilothouse.errors import Forbidden
    >>> from pilothouse.machinery.names import GroupResource
    >>> print(Forbidden.of(GroupResource("", "pods"), "web", "it is Sunday"))
    pods "web" is forbidden: it is Sunday
    """

    reason, code = "Forbidden", 403

    @classmethod
    def of(cls, resource: GroupResource, name: str, reason: str) -> Forbidden:
        """Return the error for a resource, or for an object if `name` is not empty."""
        if resource == NO_RESOURCE:
            subject = "forbidden"
        else:
            subject = f"{resource} {quote(name)} is forbidden" if name else f"{resource} is forbidden"
        return cls(f"{subject}: {reason}", details=details_of(resource, name))


class NotFound(StatusError):
    """The object or the resource does not exist (404).

    >>> from pilothouse.errors import NotFound
    >>> try:
    ...     await client.resource("v1", "namespaces").get("nowhere")
    ... except NotFound as error:
    ...     print(error)
    namespaces "nowhere" not found
    """

    reason, code = "NotFound", 404

    @classmethod
    def of(cls, resource: GroupResource, name: str) -> NotFound:
        """Return the error for a missing object."""
        return cls(f"{resource} {quote(name)} not found", details=details_of(resource, name))


class MethodNotAllowed(StatusError):
    """The resource does not support the verb (405).

    >>> from pilothouse.errors import MethodNotAllowed
    >>> from pilothouse.machinery.names import GroupResource
    >>> MethodNotAllowed.of(GroupResource("", "bindings"), "list").message
    'list is not supported on resources of kind "bindings"'
    """

    reason, code = "MethodNotAllowed", 405

    @classmethod
    def of(cls, resource: GroupResource, action: str) -> MethodNotAllowed:
        """Return the error for an unsupported verb."""
        message = f"{action} is not supported on resources of kind {quote(str(resource))}"
        return cls(message, details=details_of(resource))


class NotAcceptable(StatusError):
    """The server cannot respond in any accepted media type (406).

    >>> from pilothouse.errors import NotAcceptable
    >>> (await api.request("GET", "/api/v1/namespaces", accept="text/html")).status == NotAcceptable.code
    True
    """

    reason, code = "NotAcceptable", 406


class AlreadyExists(StatusError):
    """An object with the same name exists (409).

    >>> from pilothouse.errors import AlreadyExists
    >>> try:
    ...     await client.resource("v1", "namespaces").create({"metadata": {"name": "default"}})
    ... except AlreadyExists as error:
    ...     print(error)
    namespaces "default" already exists
    """

    reason, code = "AlreadyExists", 409

    @classmethod
    def of(cls, resource: GroupResource, name: str) -> AlreadyExists:
        """Return the error for an existing name."""
        return cls(f"{resource} {quote(name)} already exists", details=details_of(resource, name))

    @classmethod
    def no_unique_name(cls, resource: GroupResource, name: str) -> AlreadyExists:
        """Return the error for a `generateName` without a free name."""
        problem = "already exists, the server was not able to generate a unique name for the object"
        return cls(f"{resource} {quote(name)} {problem}", details=details_of(resource, name, retryAfterSeconds=1))


class Conflict(StatusError):
    """The object changed since it was read, or another manager owns a field (409). Read the object and retry.

    >>> from pilothouse.errors import Conflict
    >>> namespaces = client.resource("v1", "namespaces")
    >>> stale = await namespaces.get("default")
    >>> _ = await namespaces.patch("default", {"metadata": {"labels": {"a": "1"}}})
    >>> try:
    ...     await namespaces.update(stale)
    ... except Conflict as error:
    ...     print(error.reason)
    Conflict
    """

    reason, code = "Conflict", 409

    @classmethod
    def of(cls, resource: GroupResource, name: str, reason: str) -> Conflict:
        """Return the error for a stale or conflicting write."""
        message = f"Operation cannot be fulfilled on {resource} {quote(name)}: {reason}"
        return cls(message, details=details_of(resource, name))


class Gone(StatusError):
    """The requested object or version no longer exists (410).

    >>> from pilothouse.errors import Gone
    >>> Gone("too old resource version: 1 (5)").code
    410
    """

    reason, code = "Gone", 410


class Expired(StatusError):
    """A resourceVersion or a continue token has expired (410). List again.

    >>> from pilothouse.errors import Expired
    >>> Expired("The provided continue parameter is too old").reason
    'Expired'
    """

    reason, code = "Expired", 410


class RequestEntityTooLarge(StatusError):
    """The request body exceeds the server's limit (413).

    >>> from pilothouse.errors import RequestEntityTooLarge
    >>> RequestEntityTooLarge.of("limit is 3145728").message
    'Request entity too large: limit is 3145728'
    """

    reason, code = "RequestEntityTooLarge", 413

    @classmethod
    def of(cls, reason: str) -> RequestEntityTooLarge:
        """Return the error for an oversized body."""
        return cls(f"Request entity too large: {reason}")


class UnsupportedMediaType(StatusError):
    """The server does not support the media type of the body (415).

    >>> from pilothouse.errors import UnsupportedMediaType
    >>> (await api.request("POST", "/api/v1/namespaces", "a", media="text/plain")).status
    415
    """

    reason, code = "UnsupportedMediaType", 415


class Invalid(StatusError):
    """The object is invalid (422). `details.causes` has one entry per violated rule and field.

    >>> from pilothouse.errors import Invalid
    >>> try:
    ...     await client.resource("v1", "namespaces").create({"metadata": {"name": "A"}})
    ... except Invalid as error:
    ...     print(error.details["causes"][0]["field"])
    metadata.name
    """

    reason, code = "Invalid", 422

    @classmethod
    def of(cls, kind: GroupKind, name: str, errors: Iterable[FieldError]) -> Invalid:
        """Return the error. The message has no duplicates, nor have causes since 1.37. Beyond `MOST_ERRORS` the
        message counts the rest."""
        all_errors = in_order_of_report(errors)
        reported = all_errors[:MOST_ERRORS]
        causes = [{"reason": e.type.value, "message": e.body, "field": e.field} for e in reported]
        message = f"{kind} {quote(name)} is invalid" + (f": {aggregate(map(str, reported))}" if reported else "")
        if len(all_errors) > len(reported):
            message += f" and {len(all_errors) - len(reported)} more errors"
        details = details_of(GroupResource(kind.group, kind.kind), name)
        return cls(message, details=details | {"causes": causes} if causes else details)
