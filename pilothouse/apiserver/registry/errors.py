"""Errors of the storage layer, translated once into API errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pilothouse.apiserver.storage import errors as storage
from pilothouse.apiserver.storage.cacher import errors as cacher
from pilothouse.machinery.errors import (
    AlreadyExists,
    Conflict,
    Expired,
    InternalError,
    NotFound,
    StatusError,
    Timeout,
    TooManyRequests,
)
from pilothouse.machinery.names import GroupResource

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


@contextmanager
def translated(resource: GroupResource, name: str = "") -> Iterator[None]:
    """Whatever a store or a watch cache raises inside leaves as the Status that upstream gives for it."""
    try:
        yield
    except storage.KeyExists:
        raise AlreadyExists.of(resource, name) from None
    except storage.KeyNotFound:
        raise NotFound.of(resource, name) from None
    except storage.RevisionConflict:
        raise Conflict.of(resource, name, MODIFIED) from None
    except storage.Compacted:
        raise Expired("The resourceVersion for the provided list is too old.") from None
    except storage.FutureRevision as error:
        raise Timeout.too_large_resource_version(error.requested, error.current) from None
    except cacher.TooLargeRevision as error:
        raise Timeout.too_large_resource_version(error.requested, error.current) from None
    except cacher.TooOld as error:
        raise Expired(f"too old resource version: {error.requested} ({error.oldest})") from None
    except cacher.NotReady:
        raise TooManyRequests.of("storage is (re)initializing", 1) from None
    except storage.Unavailable as error:
        raise InternalError.of(str(error)) from error


def invalid_resource_version(text: str) -> StatusError:
    """How upstream's versioner complains: an error without a reason, hence a 500."""
    return StatusError(f"resourceVersion: Invalid value: {_quoted(text)}: strconv.ParseUint: parsing {_quoted(text)}: "
                       "invalid syntax")  # fmt: skip


def parse_resource_version(text: str) -> int:
    """Raises the StatusError above; "" and "0" are 0."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise invalid_resource_version(text)
    return int(text)


def _quoted(text: str) -> str:
    return f'"{text}"'
