"""Translation of failed etcd calls to store errors, and the back-off between attempts.

etcd's errors are distinguished by text, because many share a gRPC code. Writes count as not executed only if etcd
refused them or there was no connection; otherwise they are uncertain.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import grpc

from pilothouse.apiserver.storage.errors import StorageError, TooLarge, Unavailable
from pilothouse.machinery.dataclass import dataclass


class CompactedRevision(StorageError):
    """The revision is compacted; etcd does not report the limit."""


class RevisionToCome(StorageError):
    """The revision is in the future; etcd does not report the current one."""


class LeaseNotFound(StorageError):
    """The lease expired or was revoked."""


@dataclass(frozen=True, slots=True)
class CallFailure:
    error: StorageError
    of_member: bool = False  # the member failed, not the request
    repeatable: bool = False  # the call may be repeated on another member at once


_REFUSALS: tuple[tuple[str, Callable[[str], StorageError]], ...] = (
    ("required revision has been compacted", CompactedRevision),
    ("required revision is a future revision", RevisionToCome),
    ("requested lease not found", LeaseNotFound),
    ("request is too large", lambda _: TooLarge()),
    ("message larger than max", lambda _: TooLarge()),
    ("too many requests", Unavailable),
    ("database space exceeded", Unavailable),
)
# With these codes, etcd refused the request before executing it.
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


_FIRST, _LAST = 0.05, 1.0


def delays() -> Iterator[float]:
    """Yield the delays of an exponential back-off with jitter."""
    delay = _FIRST
    while True:
        yield delay * random.uniform(0.5, 1.0)
        delay = min(delay * 2, _LAST)
