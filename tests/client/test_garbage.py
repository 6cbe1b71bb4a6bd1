"""Pausing the garbage collector: what it spares, and that it comes back."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from pilothouse.client import garbage_collection


@pytest.fixture(autouse=True)
def nothing_frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process that leaves the collector alone; what was collected to be tested is frozen again."""
    gc.unfreeze()
    monkeypatch.setattr(garbage_collection._Tally, "frozen", False)
    yield
    gc.freeze()


class Node:
    """Something that only the collector can free."""

    def __init__(self) -> None:
        self.self = self


def test_nothing_is_collected_in_a_pause_and_what_was_made_is_old_afterwards() -> None:
    collections: list[int] = []
    gc.callbacks.append(lambda phase, info: collections.append(info["generation"]) if phase == "start" else None)
    try:
        with garbage_collection.paused(1):
            kept = [{"n": [n]} for n in range(10_000)]
            assert not gc.isenabled()
        assert collections == []
    finally:
        gc.callbacks.pop()
    assert gc.isenabled()
    young = {id(obj) for generation in (0, 1) for obj in gc.get_objects(generation)}
    assert not any(id(obj) in young for obj in kept)
    assert gc.get_freeze_count() == 0


def test_cycles_that_became_garbage_meanwhile_are_collected_in_the_end() -> None:
    with garbage_collection.paused(0):
        node = Node()
        seen = weakref.ref(node)
        del node
    assert seen() is not None
    with garbage_collection.paused(garbage_collection.FULL_COLLECTION_EVERY + 1):
        pass
    assert seen() is None


def test_the_collector_comes_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), garbage_collection.paused(1):
        raise ZeroDivisionError
    assert gc.isenabled()


def test_a_process_with_a_policy_of_its_own_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection._Tally, "frozen", False)
    gc.disable()
    try:
        with garbage_collection.paused(1):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
    gc.freeze()
    try:
        with garbage_collection.paused(1):
            assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
