"""The storage contract as plain dictionaries: slow, simple, and right."""

from __future__ import annotations

from dataclasses import dataclass, field

from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict, StorageError
from pilothouse.apiserver.storage.interface import Entry, Event, Revision


@dataclass
class Model:
    """Every state that the store has been in, by revision."""

    revision: Revision
    compacted: Revision = 0
    states: dict[Revision, dict[str, Entry]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states[self.revision] = {}

    @property
    def current(self) -> dict[str, Entry]:
        return self.states[self.revision]

    def create(self, key: str, value: bytes) -> Entry | type[StorageError]:
        if key in self.current:
            return KeyExists
        return self._set(key, Entry(key, value, self.revision + 1, self.revision + 1))

    def update(self, key: str, value: bytes, expected: Revision) -> Entry | type[StorageError]:
        refusal = self._refusal(key, expected)
        return refusal or self._set(key, Entry(key, value, self.current[key].created, self.revision + 1))

    def delete(self, key: str, expected: Revision) -> Entry | type[StorageError]:
        refusal = self._refusal(key, expected)
        if refusal:
            return refusal
        last = self.current[key]
        self._change(key, None)
        return Entry(key, last.value, last.created, self.revision)

    def listed(self, prefix: str, at: Revision) -> list[Entry]:
        state = self.states[at]
        return [state[key] for key in sorted(state, key=str.encode) if key.startswith(prefix)]

    def events_after(self, prefix: str, revision: Revision) -> list[Event]:
        return [event for event in self.events if event.revision > revision and event.key.startswith(prefix)]

    def _refusal(self, key: str, expected: Revision) -> type[StorageError] | None:
        if key not in self.current:
            return KeyNotFound
        return None if self.current[key].modified == expected else RevisionConflict

    def _set(self, key: str, entry: Entry) -> Entry:
        self._change(key, entry)
        return entry

    def _change(self, key: str, entry: Entry | None) -> None:
        state = dict(self.current)
        previous = state.pop(key, None)
        if entry is not None:
            state[key] = entry
        self.revision += 1
        self.states[self.revision] = state
        self.events.append(Event(self.revision, key, entry, previous))
