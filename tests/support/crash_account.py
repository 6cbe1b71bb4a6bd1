"""What a process that was cut off said of its writes, and what a store must hold because of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from crash_writer import value_of
from store_reading import events_until

from pilothouse.apiserver.storage.interface import Event, Store


@dataclass
class Account:
    """What `crash_writer` said. Each key has one writer, so its writes are numbered in order."""

    acknowledged: dict[tuple[str, int], int] = field(default_factory=dict)  # (key, number) → revision
    operations: dict[tuple[str, int], str] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[bytes]) -> Account:
        account = cls()
        for line in lines:
            account.hear(line)
        return account

    def hear(self, line: bytes) -> None:
        said = json.loads(line)
        write = (said["key"], said["number"])
        if "did" in said:
            self.acknowledged[write] = said["revision"]
        else:
            self.operations[write] = said["try_"]


async def check_history(store: Store, account: Account, *, start: int) -> None:
    """Assert that every acknowledged write is in the history as it was acknowledged, that every other write there
    was at least begun, and that the state is what the history leads to."""
    marker = await store.create("/registry/crash-marker", b"")
    events = await events_until(store, "/registry/", after=start, last=marker.modified)
    assert marker.modified > max(account.acknowledged.values(), default=0)
    _check_events(account, events[:-1])
    last = {event.key: event.entry for event in events}
    page = await store.list("/registry/")
    assert {entry.key: entry for entry in page.entries} == {key: entry for key, entry in last.items() if entry}


def _check_events(account: Account, events: list[Event]) -> None:
    assert [event.revision for event in events] == sorted({event.revision for event in events})
    numbers: dict[str, int] = {}
    found: dict[tuple[str, int], int] = {}
    for event in events:
        number = numbers[event.key] = numbers.get(event.key, -1) + 1
        found[event.key, number] = event.revision
        assert _operation(event) == account.operations[event.key, number]
        assert event.entry is None or event.entry.value == value_of(event.key, number)
    lost = account.acknowledged.items() - found.items()
    assert not lost, f"{len(lost)} of {len(account.acknowledged)} acknowledged writes are lost"


def _operation(event: Event) -> str:
    if event.entry is None:
        return "delete"
    return "update" if event.previous else "create"


async def check_last_values(store: Store, account: Account) -> None:
    """Assert the same of a store whose history was compacted: each key is as its last acknowledged write left it, or
    as the write behind that did; and compaction changes nothing."""
    there = {entry.key: entry for entry in (await store.list("/registry/crash/")).entries}
    last: dict[str, int] = {key: -1 for key, _ in account.operations}
    for key, number in account.acknowledged:
        last[key] = max(last[key], number)
    assert there.keys() <= last.keys()
    for key, number in last.items():
        entry = there.get(key)
        outcomes = [_left_by(account, key, at) for at in (number, number + 1) if (key, at) in account.operations]
        allowed = [*outcomes, *([None] if number < 0 else [])]
        assert (entry.value if entry else None) in allowed, f"{key} is not as write {number} left it"
    assert await store.current_revision() >= max(account.acknowledged.values(), default=0)
    await store.compact(await store.current_revision())
    assert {entry.key: entry for entry in (await store.list("/registry/crash/")).entries} == there


def _left_by(account: Account, key: str, number: int) -> bytes | None:
    return None if account.operations[key, number] == "delete" else value_of(key, number)
