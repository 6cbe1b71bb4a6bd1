"""Conversions are kept within a bound."""

from __future__ import annotations

from pilothouse.apiserver.storage.interface import Entry
from pilothouse.extensions.conversion.kept import KeptValues


def test_what_was_used_least_recently_goes_first() -> None:
    kept = KeptValues(max_bytes=20)
    for number in (1, 2):
        kept.put(0, Entry("/a", b"0123456789", 1, number))
    assert kept.get(0, "/a", 1) == b"0123456789"
    kept.put(0, Entry("/b", b"x", 3, 3))
    assert (kept.get(0, "/a", 2), kept.get(0, "/a", 1), kept.get(0, "/b", 3)) == (None, b"0123456789", b"x")


def test_a_value_that_is_put_again_counts_once() -> None:
    kept = KeptValues(max_bytes=20)
    for _ in range(5):
        kept.put(0, Entry("/a", b"0123456789", 1, 1))
    kept.put(0, Entry("/b", b"0123456789", 2, 2))
    assert kept.get(0, "/a", 1) is not None


def test_each_owner_has_its_own() -> None:
    kept = KeptValues()
    one, other = kept.new_owner(), kept.new_owner()
    kept.put(one, Entry("/a", b"x", 1, 1))
    assert (kept.get(one, "/a", 1), kept.get(other, "/a", 1)) == (b"x", None)
