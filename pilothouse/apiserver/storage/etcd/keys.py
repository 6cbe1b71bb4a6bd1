"""Ranges of keys as etcd wants them: bytes, with an end that is not part of the range."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass

# For etcd a zero byte is the lowest key when a range starts with it, and stands for no end when a range ends with it.
_FIRST = _NO_END = b"\0"


@dataclass(frozen=True, slots=True)
class EtcdKeyRange:
    """The keys with `start <= key < end`."""

    start: bytes
    end: bytes

    @staticmethod
    def under(prefix: str, *, after: str = "") -> EtcdKeyRange:
        """The keys that have the prefix and are greater than `after`."""
        start = prefix.encode() or _FIRST
        return EtcdKeyRange(max(start, after.encode() + b"\0") if after else start, prefix_end(prefix.encode()))

    @property
    def is_empty(self) -> bool:
        return self.end != _NO_END and self.start >= self.end


def prefix_end(prefix: bytes) -> bytes:
    """The smallest key that is greater than every key with the prefix."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else _NO_END
