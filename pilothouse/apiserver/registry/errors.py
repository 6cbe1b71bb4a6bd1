"""Mapping of storage errors to API errors."""

from __future__ import annotations

import logging

from pilothouse.apiserver.storage import errors as cacher
from pilothouse.apiserver.storage import errors as storage
from pilothouse.machinery.errors import AlreadyExists, Conflict, Expired, NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.server_errors import InternalError, Timeout, TooManyRequests
from pilothouse.machinery.status_error import StatusError

_log = logging.getLogger(__name__)

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class TooLargeToStore(StatusError):
    """The store rejects a value of this size. The object may fit without managedFields."""


class map_storage_errors:
    """Context manager that raises errors of a store or watch cache as upstream's Status errors."""

    __slots__ = ("_has_watch_cache", "_name", "_resource")

    def __init__(self, resource: GroupResource, name: str = "", *, has_watch_cache: bool = True) -> None:
        """`has_watch_cache` as in `Resource`."""
        self._resource = resource
        self._name = name
        self._has_watch_cache = has_watch_cache

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None:
            _raise_status(error, self._resource, self._name, retry_after=1 if self._has_watch_cache else 0)


def _raise_status(error: BaseException, resource: GroupResource, name: str, *, retry_after: int) -> None:
    """Raise the Status for a storage error. No local variable holds the new error: the traceback would make a
    reference cycle."""
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
            # The store's message may name hosts and files, so clients do not get the message.
            _log.error("%s %s: %s", resource, name, error)
            raise InternalError.of("the storage is unavailable") from error
