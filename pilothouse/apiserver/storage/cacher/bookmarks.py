"""Bookmark schedule: every minute, and two seconds before the deadline of the watch.

One timer serves all watchers, in buckets of a second. Progress is requested from the store just before a bucket is
served, so bookmarks of quiet resources keep up with the store's revision.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from pilothouse.apiserver.storage.cacher.clock import CacheClock, CacheTimer
from pilothouse.apiserver.storage.cacher.events import WatchEvent
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher

PERIOD = 60.0
BEFORE_DEADLINE = 2.0
PROGRESS_TIME = 0.1


class BookmarkSchedule:
    _buckets: dict[int, list[CacheWatcher]]  # second → watchers; closed watchers stay until served
    _timer: CacheTimer | None  # for the first bucket, or for its delivery after the progress request
    _armed: int  # the bucket of the timer

    def __init__(
        self, clock: CacheClock, *, request_progress: Callable[[], None], make: Callable[[], WatchEvent]
    ) -> None:
        self._clock = clock
        self._request_progress = request_progress
        self._make = make
        self._buckets = {}
        self._timer = None
        self._armed = 0

    def add(self, watcher: CacheWatcher) -> None:
        now = self._clock.time()
        deadline = watcher.options.deadline
        due = now + PERIOD if deadline is None else min(now + PERIOD, deadline - BEFORE_DEADLINE)
        if due >= now:
            self._buckets.setdefault(ceil(due), []).append(watcher)
            self._arm()

    def stop(self) -> None:
        self._buckets.clear()
        self._arm()

    def _arm(self) -> None:
        first = min(self._buckets, default=0)
        if self._timer is not None:
            if first == self._armed:
                return
            self._timer.cancel()
            self._timer = None
        if self._buckets:
            self._armed = first
            self._timer = self._clock.call_later(max(0.0, first - self._clock.time()), self._prepare)

    def _prepare(self) -> None:
        self._request_progress()
        self._timer = self._clock.call_later(PROGRESS_TIME, self._serve)

    def _serve(self) -> None:
        self._timer = None
        now = self._clock.time()
        due = [bucket for bucket in self._buckets if bucket <= now]
        watchers = [watcher for bucket in due for watcher in self._buckets.pop(bucket) if not watcher.closed]
        if watchers:
            self._serve_each(watchers, self._make())
        self._arm()

    def _serve_each(self, watchers: list[CacheWatcher], event: WatchEvent) -> None:
        for watcher in watchers:
            watcher.put_bookmark(event)
            self.add(watcher)
