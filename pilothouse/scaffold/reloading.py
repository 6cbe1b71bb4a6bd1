"""A program that is started again whenever a Python file of its folder changes."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import Process
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pilothouse.machinery.platform import NEW_PROCESS_GROUP, stop_process

_LOOK_EVERY = 0.5
_ENDS_WITHIN = 15.0

Snapshot = dict[str, tuple[int, int]]
"""When each file was last written, in nanoseconds, and how long it is."""


class Reloading:
    """One process at a time. One that ends by itself, such as for a syntax error, is tried again after a change."""

    def __init__(self, command: Sequence[str], folder: Path, say: Callable[[str], None]) -> None:
        self._command = command
        self._folder = folder
        self._say = say

    async def run(self, stop: asyncio.Event) -> None:
        """Keep the program running until `stop` is set; return when it has ended."""
        while not stop.is_set():
            seen = snapshot(self._folder)
            child = await asyncio.create_subprocess_exec(*self._command, cwd=self._folder, **NEW_PROCESS_GROUP)
            try:
                await self._until_changed(seen, child, stop)
                if not stop.is_set() and child.returncode is None:
                    child.kill()  # the next one goes on where it was; only the last may clear away
            finally:
                await _end(child)

    async def _until_changed(self, seen: Snapshot, child: Process, stop: asyncio.Event) -> None:
        is_told = False
        while not stop.is_set():
            if child.returncode is not None and not is_told:
                is_told = True
                self._say(f"It ended with {child.returncode}. It is tried again when a file changes.")
            if changed := changes(seen, snapshot(self._folder)):
                self._say(f"{', '.join(changed)} changed.")
                return
            await _either(stop, _LOOK_EVERY)


def snapshot(folder: Path) -> Snapshot:
    """Look at all Python files but those in hidden folders and virtual environments."""
    return {os.path.relpath(path, folder): found for path, found in _files(folder)}


def changes(before: Snapshot, after: Snapshot) -> list[str]:
    """Return the files that are new, gone or not what they were."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _files(folder: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_foreign(os.path.join(place, name))]
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(place, name)
                try:
                    stat = os.stat(path)
                except FileNotFoundError:
                    continue  # it went while we looked
                yield path, (stat.st_mtime_ns, stat.st_size)


def _is_foreign(folder: str) -> bool:
    return os.path.basename(folder).startswith((".", "__pycache__")) or os.path.exists(f"{folder}/pyvenv.cfg")


async def _either(stop: asyncio.Event, seconds: float) -> None:
    """Return when the event is set, or the time is over."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return


async def _end(child: Process) -> None:
    """Return when the process is gone; it may take its time, but not for ever."""
    with suppress(ProcessLookupError):
        stop_process(child)
    try:
        await asyncio.wait_for(child.wait(), _ENDS_WITHIN)
    except TimeoutError:
        child.kill()
        await child.wait()
