"""Errors of the watch cache, with upstream's texts."""

from __future__ import annotations

from pilothouse.apiserver.storage.errors import StorageError

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
