"""Conversions are kept within a bound."""

from __future__ import annotations

from pilothouse.apiserver.storage.interface import Entry
from pilothouse.extensions.conversion.kept import KeptValues


def test_what_was_used_least_recently_goes_first() -> None:
    kept = KeptValues(max_bytes=20)
    for number in (1, 2):
        kept.put(Entry("/a", b"0123456789", 1, number))
    assert kept.get("/a", 1) == b"0123456789"
    kept.put(Entry("/b", b"x", 3, 3))
    assert (kept.get("/a", 2), kept.get("/a", 1), kept.get("/b", 3)) == (None, b"0123456789", b"x")


def test_a_value_that_is_put_again_counts_once() -> None:
    kept = KeptValues(max_bytes=20)
    for _ in range(5):
        kept.put(Entry("/a", b"0123456789", 1, 1))
    kept.put(Entry("/b", b"0123456789", 2, 2))
    assert kept.get("/a", 1) is not None
