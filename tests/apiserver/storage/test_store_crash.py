"""A process that is killed in the middle of its writes loses none that returned, and leaves none half done."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from crash_writer import value_of
from storage_backends import Backend
from store_reading import events_until

from pilothouse.apiserver.storage.interface import Event, Store

_WRITER = Path(__file__).parents[2] / "support" / "crash_writer.py"


@dataclass
class Account:
    """What the killed process said. Each key has one writer, so its writes are numbered in order."""

    acknowledged: dict[tuple[str, int], int] = field(default_factory=dict)  # (key, number) → revision
    operations: dict[tuple[str, int], str] = field(default_factory=dict)

    def hear(self, line: bytes) -> None:
        said = json.loads(line)
        write = (said["key"], said["number"])
        if "did" in said:
            self.acknowledged[write] = said["revision"]
        else:
            self.operations[write] = said["try_"]

    def last_acknowledged(self, key: str) -> int:
        return max((number for of, number in self.acknowledged if of == key), default=-1)


async def _write_and_kill(backend: Backend, *options: str, after: int) -> Account:
    """Kills the process when `after` of its writes have returned."""
    command = (sys.executable, str(_WRITER), backend.name, backend.location, *options)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    account = Account()
    try:
        async for line in process.stdout:
            # What the process managed to say counts, even if it is heard after the kill. A torn last line was not said.
            if line.endswith(b"\n"):
                account.hear(line)
            if len(account.acknowledged) == after and process.returncode is None:
                process.send_signal(signal.SIGKILL)
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
    assert len(account.acknowledged) >= after
    return account


@pytest.mark.parametrize("seed", range(4))
async def test_every_write_that_returned_is_there_after_sigkill(backend: Backend, seed: int) -> None:
    store = await backend.open()
    start = await store.current_revision()
    await store.close()
    account = await _write_and_kill(backend, after=random.Random(seed).randint(20, 800))
    store = await backend.open()
    marker = await store.create("/registry/crash-marker", b"")
    events = await events_until(store, "/registry/", after=start, last=marker.modified)
    _check_history(account, events[:-1])
    await _check_state(store, events)
    assert marker.modified > max(account.acknowledged.values())
    await store.close()


def _check_history(account: Account, events: list[Event]) -> None:
    """Every acknowledged write is there as it was acknowledged; what else is there was at least begun."""
    assert [event.revision for event in events] == sorted({event.revision for event in events})
    numbers: dict[str, int] = {}
    found: dict[tuple[str, int], int] = {}
    for event in events:
        number = numbers[event.key] = numbers.get(event.key, -1) + 1
        found[event.key, number] = event.revision
        assert _operation(event) == account.operations[event.key, number]
        assert event.entry is None or event.entry.value == value_of(event.key, number)
    assert found.items() >= account.acknowledged.items()


def _operation(event: Event) -> str:
    if event.entry is None:
        return "delete"
    return "update" if event.previous else "create"


async def _check_state(store: Store, events: list[Event]) -> None:
    last = {event.key: event.entry for event in events}
    page = await store.list("/registry/")
    assert {entry.key: entry for entry in page.entries} == {key: entry for key, entry in last.items() if entry}


@pytest.mark.parametrize("seed", range(3))
async def test_a_kill_in_the_middle_of_compaction_loses_nothing(backend: Backend, seed: int) -> None:
    account = await _write_and_kill(backend, "compact", after=random.Random(seed).randint(20, 800))
    store = await backend.open()
    there = {entry.key: entry for entry in (await store.list("/registry/crash/")).entries}
    for key in {key for key, _ in account.operations}:
        number = account.last_acknowledged(key)
        entry = there.get(key)
        outcomes = [_left_by(account, key, at) for at in (number, number + 1) if (key, at) in account.operations]
        assert (entry.value if entry else None) in [*outcomes, *([None] if number < 0 else [])]
    assert await store.current_revision() >= max(account.acknowledged.values())
    await store.compact(await store.current_revision())
    assert {entry.key: entry for entry in (await store.list("/registry/crash/")).entries} == there
    await store.close()


def _left_by(account: Account, key: str, number: int) -> bytes | None:
    return None if account.operations[key, number] == "delete" else value_of(key, number)
