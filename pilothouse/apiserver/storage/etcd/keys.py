"""Key ranges in etcd's form: bytes with an exclusive end."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass

# In etcd a zero byte as start is the lowest key, and as end means unbounded.
_FIRST = _NO_END = b"\0"


@dataclass(frozen=True, slots=True)
class EtcdKeyRange:
    """Keys with `start <= key < end`."""

    start: bytes
    end: bytes

    @staticmethod
    def under(prefix: str, *, after: str = "") -> EtcdKeyRange:
        """Return the range of keys with the prefix that are greater than `after`."""
        start = prefix.encode() or _FIRST
        return EtcdKeyRange(max(start, after.encode() + b"\0") if after else start, prefix_end(prefix.encode()))

    @property
    def is_empty(self) -> bool:
        return self.end != _NO_END and self.start >= self.end


def prefix_end(prefix: bytes) -> bytes:
    """Return the smallest key greater than every key with the prefix."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else _NO_END
