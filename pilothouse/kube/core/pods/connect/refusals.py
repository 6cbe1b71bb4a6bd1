"""An answer of a kubelet that is no success, as an error of this server."""

from __future__ import annotations

from pilothouse.machinery.errors import BadRequest, InternalError, StatusError, details_of, from_status
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource

MAX_MESSAGE = 50_000

_KNOWN = {
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}
_TELLING = {403: "Forbidden", 406: "NotAcceptable", 415: "UnsupportedMediaType"}
"""Codes whose own message says it best."""


def refusal(status: int, text: str, resource: GroupResource, name: str) -> StatusError:
    if status == 500:
        return InternalError.of(text)
    if status == 400:
        return BadRequest(text)
    reason, message = _reason(status, text)
    found = {
        "code": status,
        "reason": reason,
        "message": f"{message} ( {resource} {name})",
        "details": details_of(resource, name),
    }
    return from_status(found, http_code=status)


def _reason(status: int, text: str) -> tuple[str, str]:
    if status in _KNOWN:
        return _KNOWN[status]
    if status in _TELLING:
        return _TELLING[status], text
    if status >= 500:
        return "InternalError", f"an error on the server ({quote(text)}) has prevented the request from succeeding"
    return "", f"the server responded with the status code {status} but did not return more information"
