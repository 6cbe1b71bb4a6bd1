"""The errors of stores."""

from __future__ import annotations

from pilothouse.machinery.status_error import PilothouseError


class StorageError(PilothouseError):
    """The root of all errors of a store."""


class KeyExists(StorageError):
    """`create` found the key already there."""


class KeyNotFound(StorageError):
    """`update` or `delete` found no such key."""


class RevisionConflict(StorageError):
    """The key is there, but not at the expected revision."""


class Compacted(StorageError):
    """The revision asked for is older than what the store still keeps."""

    def __init__(self, requested: int, oldest: int) -> None:
        super().__init__(f"revision {requested} was compacted, the oldest kept is {oldest}")
        self.requested = requested
        self.oldest = oldest


class FutureRevision(StorageError):
    """The revision asked for has not happened yet."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(f"revision {requested} is in the future, the current one is {current}")
        self.requested = requested
        self.current = current


class TooLarge(StorageError):
    """The store does not take a value of this size. The text is for clients."""

    def __init__(self, message: str = "etcdserver: request is too large") -> None:
        super().__init__(message)


class TransformFailed(StorageError):
    """A value can not be brought into the form in which it is stored, or back from it: no key, or the wrong one."""


class PluginCallFailed(TransformFailed):
    """The plugin that has the key gave no answer, or another than it was asked for; `code` is gRPC's, as Go has it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Undecodable(StorageError):
    """Stored data cannot be decoded, or an object not be encoded. The text is for clients."""


class Unavailable(StorageError):
    """The store cannot be reached or cannot write now. Whether a write that failed with this took effect is unknown
    only when `uncertain` is true; otherwise it did not."""

    def __init__(self, message: str, *, uncertain: bool = False) -> None:
        super().__init__(message)
        self.uncertain = uncertain
