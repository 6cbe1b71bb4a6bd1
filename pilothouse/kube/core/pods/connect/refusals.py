"""An answer of a kubelet that is no success, as an error of this server."""

from __future__ import annotations

from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.errors_by_reason import from_status
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.server_response import generic_response
from pilothouse.machinery.status_error import StatusError, details_of

MAX_MESSAGE = 50_000


def refusal(status: int, text: str, resource: GroupResource, name: str) -> StatusError:
    if status == 500:
        return InternalError.of(text)
    if status == 400:
        return BadRequest(text)
    meant = generic_response(status, text)
    found = {
        "code": status,
        "reason": meant.reason,
        "message": f"{meant.message} ( {resource} {name})",
        "details": details_of(resource, name),
    }
    return from_status(found, http_code=status)
