"""Errors of stores."""

from __future__ import annotations

from pilothouse.machinery.status_error import PilothouseError


class StorageError(PilothouseError):
    """Base class of all store errors."""


class KeyExists(StorageError):
    """`create`: the key exists."""


class KeyNotFound(StorageError):
    """`update` or `delete`: the key does not exist."""


class RevisionConflict(StorageError):
    """The key has another revision than expected."""


class Compacted(StorageError):
    """The requested revision is older than the store's history."""

    def __init__(self, requested: int, oldest: int) -> None:
        super().__init__(f"revision {requested} was compacted, the oldest kept is {oldest}")
        self.requested = requested
        self.oldest = oldest


class FutureRevision(StorageError):
    """The requested revision is in the future."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(f"revision {requested} is in the future, the current one is {current}")
        self.requested = requested
        self.current = current


class TooLarge(StorageError):
    """The value exceeds the store's size limit. The text is for clients."""

    def __init__(self, message: str = "etcdserver: request is too large") -> None:
        super().__init__(message)


class TransformFailed(StorageError):
    """A value cannot be encrypted or decrypted: missing or wrong key."""


class PluginCallFailed(TransformFailed):
    """The KMS plugin failed or gave an invalid answer; `code` is the gRPC code in Go's form."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Undecodable(StorageError):
    """Stored data cannot be decoded, or an object cannot be encoded. The text is for clients."""


class Unavailable(StorageError):
    """The store is unreachable or cannot write. A failed write may have taken effect only if `uncertain` is true."""

    def __init__(self, message: str, *, uncertain: bool = False) -> None:
        super().__init__(message)
        self.uncertain = uncertain


REINITIALIZING = "storage is (re)initializing"


class CacheNotReady(StorageError):
    """The cache is being filled and cannot answer yet."""

    def __init__(self, cause: Exception | None = None, *, retry_after: int = 1) -> None:
        super().__init__(REINITIALIZING + (f": {cause}" if cause else ""))
        self.retry_after = retry_after


class TooOld(StorageError):
    """Changes after the requested revision have left the window."""

    def __init__(self, requested: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {requested} ({oldest})")
        self.requested = requested
        self.oldest = oldest


class TooLargeRevision(StorageError):
    """The requested revision was not reached in time."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(f"Too large resource version: {requested}, current: {current}")
        self.requested = requested
        self.current = current
