"""Failed calls to etcd as errors of a store.

Only etcd's texts tell its errors apart: many share one gRPC code. Whether a write may have happened is judged on the
safe side: it did not happen only when etcd refused it, or when there was no connection to send it on.
"""

from __future__ import annotations

from collections.abc import Callable

import grpc

from pilothouse.apiserver.storage.errors import StorageError, TooLarge, Unavailable
from pilothouse.machinery.dataclass import dataclass


class CompactedRevision(StorageError):
    """The revision is compacted; etcd does not say up to where."""


class RevisionToCome(StorageError):
    """The revision is in the future; etcd does not say how far."""


class LeaseNotFound(StorageError):
    """The lease ran out or was revoked."""


@dataclass(frozen=True, slots=True)
class CallFailure:
    error: StorageError
    of_member: bool = False  # the member is to blame, not the request
    repeatable: bool = False  # nothing speaks against making the call on another member, now


_REFUSALS: tuple[tuple[str, Callable[[str], StorageError]], ...] = (
    ("required revision has been compacted", CompactedRevision),
    ("required revision is a future revision", RevisionToCome),
    ("requested lease not found", LeaseNotFound),
    ("request is too large", lambda _: TooLarge()),
    ("message larger than max", lambda _: TooLarge()),
    ("too many requests", Unavailable),
    ("database space exceeded", Unavailable),
)
# What etcd answers with these codes it has decided before doing anything.
_REFUSED = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
_UNSENT = ("failed to connect to all addresses", "DNS resolution failed", "empty address list")


def failure_of(error: grpc.aio.AioRpcError, url: str, *, wrote: bool) -> CallFailure:
    details = error.details() or ""
    for text, make in _REFUSALS:
        if text in details:
            return CallFailure(make(details))
    if error.code() in _REFUSED:
        return CallFailure(StorageError(f"etcd at {url} refuses the request: {details}"))
    message = f"etcd at {url} is not available: {details or error.code().name}"
    if error.code() is grpc.StatusCode.UNAVAILABLE and details.startswith(_UNSENT):
        return CallFailure(Unavailable(message), of_member=True, repeatable=True)
    in_time = error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED
    return CallFailure(Unavailable(message, uncertain=wrote), of_member=True, repeatable=in_time and not wrote)
