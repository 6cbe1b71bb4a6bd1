"""Conversions are kept within a bound."""

from __future__ import annotations

from pilothouse.apiserver.storage.interface import Entry
from pilothouse.extensions.conversion.converter import ConvertedValue, ConvertedValues


def put(kept: ConvertedValues, key: str, revision: int, value: bytes, *, owner: int = 0) -> None:
    kept.put(owner, Entry(key, b"as it is stored", 1, revision), ConvertedValue(value, stale=False))


def found(kept: ConvertedValues, key: str, revision: int, *, owner: int = 0) -> bytes | None:
    shown = kept.get(owner, key, revision)
    return shown.value if shown else None


VALUE = b"0123456789"
ROOM = 16 * (len("/a") + len(VALUE))
"""For sixteen."""


def test_least_recently_used_value_is_evicted_first() -> None:
    kept = ConvertedValues(max_bytes=ROOM)
    for number in range(16):
        put(kept, "/a", number, VALUE)
    assert found(kept, "/a", 0) == VALUE
    put(kept, "/b", 17, b"x")
    assert (found(kept, "/a", 1), found(kept, "/a", 0), found(kept, "/b", 17)) == (None, VALUE, b"x")


def test_a_value_that_is_put_again_counts_once() -> None:
    kept = ConvertedValues(max_bytes=ROOM)
    put(kept, "/a", 1, VALUE)
    for _ in range(20):
        put(kept, "/b", 2, VALUE)
    assert found(kept, "/a", 1) is not None


def test_owners_do_not_share_values() -> None:
    kept = ConvertedValues()
    one, other = kept.new_owner(), kept.new_owner()
    put(kept, "/a", 1, b"x", owner=one)
    assert (found(kept, "/a", 1, owner=one), found(kept, "/a", 1, owner=other)) == (b"x", None)
