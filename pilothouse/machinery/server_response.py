"""An answer that is no success and says nothing that a program understands, in the words of client-go."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote

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
_TELLING = {403: "Forbidden", 415: "UnsupportedMediaType"}
"""Codes with which the server's own text says it best."""


def generic_response(code: int, text: str, *, method: str = "") -> GenericResponse:
    """`text` is what the server said, "unknown" where that is no text."""
    if code in _TELLING:
        return GenericResponse(_TELLING[code], text)
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
