"""Caches for keys that clients choose never hold more than they may."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.bounded_cache import BoundedCache, bounded_cache


def test_a_short_argument_is_computed_once_and_a_long_one_every_time() -> None:
    computed: list[str] = []

    @bounded_cache(entries=4, key_bytes=5)
    def upper(text: str) -> str:
        computed.append(text)
        return text.upper()

    assert [upper("abcde"), upper("abcde"), upper("abcdef"), upper("abcdef")] == ["ABCDE"] * 2 + ["ABCDEF"] * 2
    assert computed == ["abcde", "abcdef", "abcdef"]


def test_the_lengths_of_all_arguments_count_together() -> None:
    computed: list[tuple[str, ...]] = []

    @bounded_cache(entries=4, key_bytes=5)
    def pair(one: str, two: str) -> None:
        computed.append((one, two))

    @bounded_cache(entries=4, key_bytes=5)
    def triple(one: str, two: str, three: str) -> None:
        computed.append((one, two, three))

    for _ in range(2):
        pair("abc", "de")
        pair("abc", "def")
        triple("ab", "cd", "e")
        triple("ab", "cd", "ef")
    assert len([args for args in computed if sum(map(len, args)) == 5]) == 2
    assert len([args for args in computed if sum(map(len, args)) == 6]) == 4


def test_only_what_clients_choose_counts() -> None:
    computed: list[tuple[str, object, bool]] = []

    @bounded_cache(entries=4, key_bytes=5, chosen=1)
    def ask(header: str, ours: object, also_ours: bool) -> None:
        computed.append((header, ours, also_ours))

    for _ in range(2):
        ask("abcde", 3, True)
        ask("abcdef", 3, True)
    assert [header for header, _, _ in computed] == ["abcde", "abcdef", "abcdef"]


def test_a_method_counts_its_arguments_without_itself() -> None:
    class Reader:
        def read(self, text: str) -> str:
            return text.upper()

    read = bounded_cache(entries=4, key_bytes=5)(Reader().read)
    assert [read("abc"), read("abc"), read("abcdef")] == ["ABC", "ABC", "ABCDEF"]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 200)), max_size=80))
def test_a_cache_never_holds_more_entries_or_bytes_than_it_may(puts: list[tuple[int, int]]) -> None:
    cache: BoundedCache[int, int] = BoundedCache(entries=8, total_bytes=1600)
    newest: dict[int, int] = {}
    for key, size in puts:
        cache.put(key, size, size=size)
        newest[key] = size
        kept = {k: v for k in newest if (v := cache.get(k)) is not None}
        assert len(kept) == len(cache) <= 8
        assert sum(kept.values()) <= 1600
        assert all(newest[k] == v and v <= 100 for k, v in kept.items())


def test_the_least_recently_used_entry_goes_first() -> None:
    cache: BoundedCache[str, int] = BoundedCache(entries=2, total_bytes=1000)
    cache.put("a", 1, size=1)
    cache.put("b", 2, size=1)
    cache.get("a")
    cache.put("c", 3, size=1)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_an_entry_ends_with_its_time_and_makes_room() -> None:
    now = 0.0
    cache: BoundedCache[str, int] = BoundedCache(entries=2, total_bytes=1000, now=lambda: now)
    cache.put("a", 1, size=1, ttl=5)
    cache.put("b", 2, size=1, ttl=0)
    assert cache.get("a") == 1
    assert cache.get("b") is None
    now = 5.0
    assert cache.get("a") is None
    assert len(cache) == 0


_steps = st.lists(st.tuples(st.sampled_from(["put", "get", "wait"]), st.integers(0, 3), st.integers(1, 5)), max_size=30)


@settings(max_examples=60)
@given(_steps)
def test_a_cache_forgets_what_is_old_and_what_is_least_used(steps: list[tuple[str, int, int]]) -> None:
    now = 0.0
    kept: dict[int, tuple[float, float]] = {}
    cache: BoundedCache[int, float] = BoundedCache(entries=2, total_bytes=1000, now=lambda: now)
    for what, key, number in steps:
        if what == "put":
            cache.put(key, now, size=1, ttl=number)
            kept.pop(key, None)
            kept[key] = (now, now + number)
            if len(kept) > 2:
                del kept[next(iter(kept))]
        elif what == "get":
            entry = kept.pop(key, None)
            if entry is not None and entry[1] > now:
                kept[key] = entry
                assert cache.get(key) == entry[0]
            else:
                assert cache.get(key) is None
        else:
            now += number
    assert len(cache) <= 2


def test_threads_can_share_a_cache() -> None:
    cache: BoundedCache[int, int] = BoundedCache(entries=8, total_bytes=1600)

    def use(seed: int) -> None:
        for number in range(30_000):
            key = (number * seed) % 13
            cache.put(key, key, size=key)
            assert cache.get((key + seed) % 13) in (None, (key + seed) % 13)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            for outcome in [threads.submit(use, seed) for seed in (1, 3, 5, 7)]:
                outcome.result()
    finally:
        sys.setswitchinterval(interval)
    kept = [key for key in range(13) if cache.get(key) is not None]
    for key in kept:
        cache.discard(key)
    assert cache._bytes == 0, "what came and what went were counted alike"
