"""Errors of the storage layer, translated once into API errors."""

from __future__ import annotations

import logging

from pilothouse.apiserver.storage import errors as storage
from pilothouse.apiserver.storage.cacher import errors as cacher
from pilothouse.machinery.errors import AlreadyExists, Conflict, Expired, NotFound
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, resource_version_of
from pilothouse.machinery.server_errors import InternalError, Timeout, TooManyRequests
from pilothouse.machinery.status_error import StatusError

_log = logging.getLogger(__name__)

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

_UINT64_DIGITS = 20


_UNCACHED = frozenset({"events"})
"""What upstream keeps in no watch cache: who asks too early has no cache to wait for."""


class TooLargeToStore(StatusError):
    """The store takes no value of this size; without managedFields the object may be small enough."""


class translated:
    """Raise what a store or a watch cache raises in the block as the Status that upstream gives for it."""

    __slots__ = ("_name", "_resource")

    def __init__(self, resource: GroupResource, name: str = "") -> None:
        self._resource = resource
        self._name = name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None:
            _raise_status(error, self._resource, self._name)


def _raise_status(error: BaseException, resource: GroupResource, name: str) -> None:
    """Nothing here has a name for what is raised: that would be a cycle, by the traceback, for as long as the garbage
    collector does not come to it."""
    match error:
        case storage.KeyExists():
            raise AlreadyExists.of(resource, name) from None
        case storage.KeyNotFound():
            raise NotFound.of(resource, name) from None
        case storage.RevisionConflict():
            raise Conflict.of(resource, name, MODIFIED) from None
        case storage.Compacted():
            raise Expired("The resourceVersion for the provided list is too old.") from None
        case storage.FutureRevision() | cacher.TooLargeRevision():
            retry_after = 0 if resource.resource in _UNCACHED else 1
            raise Timeout.too_large_resource_version(error.requested, error.current, retry_after) from None
        case cacher.TooOld():
            raise Expired(f"too old resource version: {error.requested} ({error.oldest})") from None
        case cacher.CacheNotReady():
            raise TooManyRequests.of("storage is (re)initializing", 1) from None
        case storage.TransformFailed():
            raise InternalError.of(str(error)) from error
        case storage.TooLarge():
            raise TooLargeToStore(str(error)) from None
        case storage.Undecodable():
            raise StatusError(str(error)) from None
        case storage.Unavailable():
            # What the store says may name hosts and files, which is nothing for clients.
            _log.error("%s %s: %s", resource, name, error)
            raise InternalError.of("the storage is unavailable") from error


def parse_resource_version(text: str) -> int:
    """The version that a request asks for; "" and "0" are 0. Raises an error without a reason, hence a 500."""
    try:
        return _uint64(text)
    except ValueError as error:
        raise StatusError(f"resourceVersion: Invalid value: {quote(text)}: {error}") from None


def object_resource_version(obj: Json) -> int:
    """The version that an object carries, 0 where it has none. Upstream does not name the field when it is none."""
    try:
        return _uint64(resource_version_of(obj))
    except ValueError as error:
        raise StatusError(str(error)) from None


def _uint64(text: str) -> int:
    """Raises ValueError with Go's message."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: invalid syntax")
    # Longer texts are refused before the costly conversion.
    if len(text.lstrip("0")) > _UINT64_DIGITS or int(text) >= 2**64:
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)
