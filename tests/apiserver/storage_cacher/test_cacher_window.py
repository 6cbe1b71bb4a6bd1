from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apiserver.storage.cacher.events import CacheChange
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.cacher.window import ChangeWindow, WindowLimits
from pilothouse.apiserver.storage.errors import TooOld
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.machinery.names import GroupResource

LABELS = {"group": "g", "resource": "windows"}


def window(**limits: Any) -> ChangeWindow:
    return ChangeWindow(WindowLimits(**limits), CacheMetrics(GroupResource("g", "windows")))


def fill(window: ChangeWindow, revisions: range, *, every: float) -> None:
    for revision in revisions:
        window.add(CacheChange(revision, f"/{revision}", None, None, revision * every))


def test_old_changes_are_kept_up_to_the_least_number() -> None:
    old = window(least=10, most=100)
    fill(old, range(1, 51), every=100.0)
    assert len(old) == 10
    assert old.floor == 40
    assert [change.revision for change in old.after(47)] == [48, 49, 50]


def test_changes_of_the_last_seconds_are_all_kept() -> None:
    young = window(least=10, most=1000)
    fill(young, range(1, 301), every=0.5)
    assert len(young.after(150)) == 150
    assert young.floor <= 150


def test_no_more_than_the_most_are_kept_however_young() -> None:
    full = window(least=10, most=100)
    fill(full, range(1, 1001), every=0.001)
    assert len(full) == 100
    with pytest.raises(TooOld):
        full.after(899)
    assert len(full.after(900)) == 100


def test_the_window_narrows_again_when_changes_become_rare() -> None:
    narrowing = window(least=10, most=1000)
    fill(narrowing, range(1, 301), every=0.1)
    widened = REGISTRY.get_sample_value("watch_cache_capacity", LABELS)
    fill(narrowing, range(301, 1300), every=100.0)
    assert widened == 320
    assert REGISTRY.get_sample_value("watch_cache_capacity", LABELS) == 10
    assert len(narrowing) == 10


def test_a_restart_forgets_everything_before_it() -> None:
    restarted = window(least=10, most=100)
    fill(restarted, range(1, 6), every=1.0)
    restarted.restart(9)
    with pytest.raises(TooOld, match=r"too old resource version: 5 \(9\)"):
        restarted.after(5)
    assert restarted.after(9) == []
