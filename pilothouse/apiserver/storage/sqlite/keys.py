"""Key ranges, in code point order, which equals UTF-8 byte order."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass

_LAST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class SqliteKeyRange:
    """Keys with `start <= key < end`; end None = unbounded."""

    start: str
    end: str | None

    @staticmethod
    def under(prefix: str, *, after: str = "") -> SqliteKeyRange:
        """Return the range of keys with the prefix that are greater than `after`."""
        return SqliteKeyRange(max(prefix, after + "\0") if after else prefix, prefix_end(prefix))

    def __contains__(self, key: str) -> bool:
        return self.start <= key and (self.end is None or key < self.end)


def prefix_end(prefix: str) -> str | None:
    """Return the smallest string greater than every key with the prefix; None if there is none."""
    stem = prefix.rstrip(_LAST)
    return stem[:-1] + _successor(stem[-1]) if stem else None


def _successor(char: str) -> str:
    # Skip surrogates, which UTF-8 cannot encode.
    return "\ue000" if char == "\ud7ff" else chr(ord(char) + 1)
