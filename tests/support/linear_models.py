"""What an object and a list of objects are to concurrent clients: a register and a set."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

from linearizability import UNKNOWN, Operation, Refuted

Value: TypeAlias = str | None
Observed = TypeVar("Observed")

CONFLICT = "conflict"
"""The outcome of a write that the server refused because of what is there."""


def register(value: Value, operation: Operation) -> Value:
    """One object, None while it is not there.

        read → the value    create(value)    write(value)    compare((expected, value))

    Each of the last three has None as its outcome, or CONFLICT, and then it has changed nothing.
    """
    name, argument, outcome = operation.name, operation.argument, operation.outcome
    if name == "read":
        return _observed(value, operation)
    expected, new = argument if name == "compare" else (None, argument)
    holds = value is not None if name == "write" else value == expected
    if outcome is not UNKNOWN and holds != (outcome is None):
        raise Refuted
    return new if holds else value


def subset(members: int, operation: Operation) -> int:
    """A set of numbers, as bits: what a list shows of objects that are created and deleted.

        read → the bits    add(number)    remove(number)

    The last two have None as their outcome, or CONFLICT if the number was there already, or was not.
    """
    if operation.name == "read":
        return _observed(members, operation)
    bit = 1 << operation.argument
    changes = bool(members & bit) == (operation.name == "remove")
    if operation.is_known and changes != (operation.outcome is None):
        raise Refuted
    return members ^ bit if changes else members


def _observed(state: Observed, operation: Operation) -> Observed:
    if operation.is_known and operation.outcome != state:
        raise Refuted
    return state
