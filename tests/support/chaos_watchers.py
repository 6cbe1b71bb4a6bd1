"""Watchers that follow all objects of the clients through changing replicas, and whether they were told everything."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from chaos_clients import config_maps
from chaos_ledger import UNANSWERED, Ledger, Written, revision_of, written
from replicated_cluster import Replica

from pilothouse.client import ListOptions, ResourceClient, WatchEvent

_SILENCE = 3.0
"""After so many seconds without an event a watcher tries another replica, as a client's health checks would."""


@dataclass(frozen=True)
class Told:
    type: str
    object: Written


class Watcher:
    """Resumes behind the last event, on the next replica unless it has one only, where it is cut off, and lists again
    where events are gone."""

    def __init__(self, replicas: list[Replica], first: int = 0, *, bookmarks: bool = False) -> None:
        self._replicas = replicas
        self._turn = first
        self._bookmarks = bookmarks
        self.reached = 0
        self.told: list[Told] = []
        self.listed: list[tuple[int, int]] = []  # from which revision to which a list stands for the events
        self.resumed = 0
        self.violations: list[str] = []
        self._progress = asyncio.Event()

    async def follow_for_ever(self) -> None:
        while True:
            try:
                async with config_maps(self._replicas[self._turn % len(self._replicas)]) as objects:
                    await self._follow(objects)
            except UNANSWERED:
                await asyncio.sleep(0.05)
            self._turn += 1
            self.resumed += 1

    async def until(self, revision: int) -> None:
        while self.reached < revision:
            self._progress.clear()
            await self._progress.wait()

    async def _follow(self, objects: ResourceClient) -> None:
        if self.reached == 0 or not await self._watch(objects):
            async with asyncio.timeout(_SILENCE):
                reached = revision_of(await objects.list())
            if reached < self.reached:
                self.violations.append(f"a list went back from {self.reached} to {reached}")
            self.listed.append((self.reached, reached))
            self._come_to(reached)

    async def _watch(self, objects: ResourceClient) -> bool:
        """Return False where events are gone that this watcher has not seen."""
        options = ListOptions(resource_version=str(self.reached), allow_watch_bookmarks=self._bookmarks)
        async with asyncio.timeout(_SILENCE):
            watch = await objects.watch(options)
        async with watch:
            while True:
                async with asyncio.timeout(_SILENCE):
                    event = await anext(watch, None)
                if event is None:
                    return True
                if event.type == "ERROR":
                    return event.object.get("code") != 410
                self._hear(event)

    def _hear(self, event: WatchEvent) -> None:
        if event.type == "BOOKMARK":
            self._come_to(revision_of(event.object))
            return
        heard = Told(event.type, written(event.object))
        if heard.object.revision <= self.reached:
            self.violations.append(f"{heard} was told at {self.reached}")
        self.told.append(heard)
        self._come_to(heard.object.revision)

    def _come_to(self, revision: int) -> None:
        self.reached = max(self.reached, revision)
        self._progress.set()


def check_watcher(watcher: Watcher, ledger: Ledger, seen: dict[int, Told], values: dict[tuple[str, str], int]) -> int:
    """Add to its violations what was not told, told twice or told wrongly; forget what was checked. `seen` has what
    others were told at each revision, `values` at which revision a value was. Return how many events were missing."""
    told = {event.object.revision: event for event in watcher.told}
    missing = [
        wrote
        for wrote in ledger.acknowledged
        if not _stands_for(watcher, wrote.revision) and wrote != getattr(told.get(wrote.revision), "object", None)
    ]
    gone = {event.object.name for event in watcher.told if event.type == "DELETED"}
    if not watcher.listed:
        missing += [Written(0, name, "deleted") for name in ledger.removed if name not in gone]
    watcher.violations += [f"no watcher was told of {wrote}" for wrote in missing]
    for event in watcher.told:
        watcher.violations += _contradictions(event, ledger, seen, values)
    watcher.told.clear()
    watcher.listed.clear()
    return len(missing)


def _stands_for(watcher: Watcher, revision: int) -> bool:
    return any(since < revision <= reached for since, reached in watcher.listed)


def _contradictions(
    event: Told, ledger: Ledger, seen: dict[int, Told], values: dict[tuple[str, str], int]
) -> list[str]:
    revision, key = event.object.revision, (event.object.name, event.object.value)
    found = []
    if seen.setdefault(revision, event) != event:
        found.append(f"{event} was {seen[revision]} to another watcher")
    if key in ledger.refused:
        found.append(f"{event} was told of a write that was refused")
    if event.type != "DELETED" and values.setdefault(key, revision) != revision:
        found.append(f"{event} took effect at {values[key]}, too")
    return found
