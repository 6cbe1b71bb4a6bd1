"""Ranges of keys. Keys are compared by code point, which is also the order of their UTF-8 bytes."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass

_LAST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class SqliteKeyRange:
    """The keys with `start <= key < end`; without an end, all from `start` on."""

    start: str
    end: str | None

    @staticmethod
    def under(prefix: str, *, after: str = "") -> SqliteKeyRange:
        """The keys that have the prefix and are greater than `after`."""
        return SqliteKeyRange(max(prefix, after + "\0") if after else prefix, prefix_end(prefix))

    def __contains__(self, key: str) -> bool:
        return self.start <= key and (self.end is None or key < self.end)


def prefix_end(prefix: str) -> str | None:
    """The smallest text that is greater than every key with the prefix, or None if there is none."""
    stem = prefix.rstrip(_LAST)
    return stem[:-1] + _successor(stem[-1]) if stem else None


def _successor(char: str) -> str:
    # Surrogates are no characters: UTF-8 cannot hold them.
    return "\ue000" if char == "\ud7ff" else chr(ord(char) + 1)
