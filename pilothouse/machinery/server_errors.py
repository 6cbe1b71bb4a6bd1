"""API errors of the server: overload (429), failures and timeouts (5xx), and client-go's generic responses."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError, details_of


class TooManyRequests(StatusError):
    """The server is overloaded (429). Retry after `retry_after_seconds`.

    >>> from pilothouse.errors import TooManyRequests
    >>> TooManyRequests.of("try later", 2).retry_after_seconds
    2
    """

    reason, code = "TooManyRequests", 429

    @classmethod
    def of(cls, message: str, retry_after_seconds: int) -> TooManyRequests:
        """Return the error with a retry delay."""
        return cls(message, details={"retryAfterSeconds": retry_after_seconds} if retry_after_seconds else {})


class InternalError(StatusError):
    """Internal error of the server (500).

    >>> from pilothouse.errors import InternalError
    >>> InternalError.of("no space").message
    'Internal error occurred: no space'
    """

    reason, code = "InternalError", 500

    @classmethod
    def of(cls, reason: str) -> InternalError:
        """Return the error with its cause."""
        return cls(f"Internal error occurred: {reason}", details={"causes": [{"message": reason}]})


class ServerTimeout(StatusError):
    """The server could not finish in time and nothing was done (500). Retry.

    >>> from pilothouse.errors import ServerTimeout
    >>> from pilothouse.machinery.names import GroupResource
    >>> ServerTimeout.of(GroupResource("", "pods"), "create", 1).retry_after_seconds
    1
    """

    reason, code = "ServerTimeout", 500

    @classmethod
    def of(cls, resource: GroupResource, operation: str, retry_after_seconds: int) -> ServerTimeout:
        """Return the error for an operation that may be retried."""
        message = f"The {operation} operation against {resource} could not be completed at this time, please try again."
        return cls(message, details=details_of(resource, operation, retryAfterSeconds=retry_after_seconds))


class ServiceUnavailable(StatusError):
    """The server, or a server behind it, is unavailable (503).

    >>> from pilothouse.errors import ServiceUnavailable
    >>> ServiceUnavailable("service unavailable").code
    503
    """

    reason, code = "ServiceUnavailable", 503


class Timeout(StatusError):
    """The request timed out; whether it took effect is unknown (504).

    >>> from pilothouse.errors import Timeout
    >>> Timeout.of("request did not complete within 10s", 0).message
    'Timeout: request did not complete within 10s'
    """

    reason, code = "Timeout", 504

    @classmethod
    def of(cls, message: str, retry_after_seconds: int) -> Timeout:
        """Return the error with a retry delay."""
        details: Json = {"retryAfterSeconds": retry_after_seconds} if retry_after_seconds else {}
        return cls(f"Timeout: {message}", details=details)

    @classmethod
    def too_large_resource_version(cls, requested: int, current: int, retry_after_seconds: int) -> Timeout:
        """Return the error for a read at a revision that does not exist yet."""
        error = cls.of(f"Too large resource version: {requested}, current: {current}", retry_after_seconds)
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        return cls(error.message, details={"causes": [cause]} | (error.details or {}))


RESOURCE_NOT_FOUND = "the server could not find the requested resource"
METHOD_NOT_ALLOWED = "the server does not allow this method on the requested resource"
ERROR_IN_REQUEST = "the server rejected our request due to an error in our request"


@dataclass(frozen=True, slots=True)
class GenericResponse:
    reason: str
    message: str


_KNOWN = {
    400: GenericResponse("BadRequest", "the server rejected our request for an unknown reason"),
    401: GenericResponse("Unauthorized", "the server has asked for the client to provide credentials"),
    404: GenericResponse("NotFound", RESOURCE_NOT_FOUND),
    405: GenericResponse("MethodNotAllowed", METHOD_NOT_ALLOWED),
    406: GenericResponse(
        "NotAcceptable", "the server was unable to respond with a content type that the client supports"
    ),
    409: GenericResponse("Conflict", "the server reported a conflict"),
    422: GenericResponse("Invalid", ERROR_IN_REQUEST),
    429: GenericResponse(
        "TooManyRequests", "the server has received too many requests and has asked us to try again later"
    ),
    503: GenericResponse("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: GenericResponse(
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}
_WITH_SERVER_TEXT = {403: "Forbidden", 415: "UnsupportedMediaType"}
"""Codes for which the server's text is used as message."""


def generic_response(code: int, text: str, *, method: str = "") -> GenericResponse:
    """Return client-go's reason and message for a response without Status. `text` is the body, or "unknown"."""
    if code in _WITH_SERVER_TEXT:
        return GenericResponse(_WITH_SERVER_TEXT[code], text)
    if code == 406 and text not in ("", "unknown"):
        return GenericResponse(_KNOWN[code].reason, text)
    if code == 409 and method == "POST":
        return GenericResponse("AlreadyExists", _KNOWN[code].message)
    if code in _KNOWN:
        return _KNOWN[code]
    if code >= 500:
        problem = f"an error on the server ({quote(text)}) has prevented the request from succeeding"
        return GenericResponse("InternalError", problem)
    return GenericResponse("", f"the server responded with the status code {code} but did not return more information")
