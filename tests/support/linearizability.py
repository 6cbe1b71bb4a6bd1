"""Whether a history of concurrent operations could have happened one after the other.

A history is linearizable if each operation can be given one moment between its call and its return such that, done in
the order of these moments, every operation has the outcome that was seen. The search is Wing and Gong's, with Lowe's
memory of what was tried before, as in Knossos and Porcupine:

    take the first operation in the list that the model allows, remove its call and its return, go on
    at the return of an operation that was not taken, undo the last one and try the next

An operation whose outcome nobody knows has no return: it may take effect at any time after its call, or never.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

State = TypeVar("State")

UNKNOWN = "unknown"
"""The outcome of an operation that was not answered."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What a client asked for and what it was told, with the times of both on one clock."""

    name: str
    argument: Any
    outcome: Any
    called: float
    returned: float  # means nothing if the outcome is UNKNOWN

    @property
    def is_known(self) -> bool:
        return self.outcome is not UNKNOWN


class Refuted(Exception):
    """Raised by a model: the operation cannot have this outcome in this state."""


class Undecided(Exception):
    """The search has taken too many steps: too much was concurrent, or had no outcome."""


Step: TypeAlias = Callable[[State, Operation], State]
"""A model: the state after an operation. It allows every operation whose outcome is unknown. Raises Refuted."""


@dataclass(slots=True)
class _Entry:
    """A call or a return, in a list that both can be taken out of and put back into at once."""

    number: int
    operation: Operation
    is_call: bool
    match: _Entry | None = None  # the return of a call, if there was one
    before: _Entry | None = field(default=None, repr=False)
    after: _Entry | None = field(default=None, repr=False)

    def take_out(self) -> None:
        assert self.before is not None
        self.before.after = self.after
        if self.after is not None:
            self.after.before = self.before

    def put_back(self) -> None:
        assert self.before is not None
        self.before.after = self
        if self.after is not None:
            self.after.before = self


class _Search(Generic[State]):
    """`_taken` has the calls in the order that they took effect in, each with the state before it."""

    def __init__(self, initial: State, step: Step[State], history: Sequence[Operation]) -> None:
        self._state = initial
        self._step = step
        self._head = _linked(history)
        self._open = sum(operation.is_known for operation in history)
        self._done = 0  # a bit for each operation that was taken
        self._seen: set[tuple[int, State]] = set()
        self._taken: list[tuple[_Entry, State]] = []

    def succeeds(self, steps: int) -> bool:
        entry = self._head.after
        while self._open:
            steps -= 1
            if not steps:
                raise Undecided
            assert entry is not None, "the last entry is a return, as long as one is open"
            if not entry.is_call:
                if not self._taken:
                    return False
                entry = self._undo().after
            elif self._take(entry):
                entry = self._head.after
            else:
                entry = entry.after
        return True

    def _take(self, call: _Entry) -> bool:
        """Whether the model allows it, and this way has not been tried."""
        try:
            state = self._step(self._state, call.operation)
        except Refuted:
            return False
        reached = (self._done | 1 << call.number, state)
        if reached in self._seen:
            return False
        self._seen.add(reached)
        self._taken.append((call, self._state))
        self._done, self._state = reached
        call.take_out()
        if call.match is not None:
            call.match.take_out()
            self._open -= 1
        return True

    def _undo(self) -> _Entry:
        call, self._state = self._taken.pop()
        self._done &= ~(1 << call.number)
        if call.match is not None:
            call.match.put_back()
            self._open += 1
        call.put_back()
        return call


def linearizable(initial: State, step: Step[State], history: Sequence[Operation], *, steps: int = 2_000_000) -> bool:
    """Return whether some order of the operations that agrees with their times explains all outcomes.

    Raises Undecided after so many steps: the problem is NP-complete.
    """
    return _Search(initial, step, history).succeeds(steps)


def _linked(history: Sequence[Operation]) -> _Entry:
    """The entries in the order of time behind one that is none of them. Of a call and a return at the same time the
    call comes first: then the two may have overlapped."""
    timed: list[tuple[float, bool, _Entry]] = []
    for number, operation in enumerate(history):
        call = _Entry(number, operation, is_call=True)
        timed.append((operation.called, False, call))
        if operation.is_known:
            call.match = _Entry(number, operation, is_call=False)
            timed.append((operation.returned, True, call.match))
    head = last = _Entry(-1, Operation("", None, UNKNOWN, 0, 0), is_call=False)
    for _, _, entry in sorted(timed, key=lambda item: item[:2]):
        entry.before, last.after = last, entry
        last = entry
    return head
