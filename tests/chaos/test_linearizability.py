"""The checker of histories: it passes every history that a real register or set could have made, and finds the faults
that a store may have."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from linear_models import CONFLICT, register, subset
from linearizability import UNKNOWN, Operation, Refuted, linearizable

THOROUGH = settings(max_examples=60, deadline=None, database=None)


def op(name: str, argument: Any, outcome: Any, called: float, returned: float) -> Operation:
    return Operation(name, argument, outcome, called, returned)


@st.composite
def real_histories(draw: st.DrawFn) -> list[Operation]:
    """Made by a register that does one operation at a time, each somewhere between its call and its return."""
    value: str | None = None
    history: list[Operation] = []
    for number in range(draw(st.integers(1, 24))):
        name = draw(st.sampled_from(["read", "create", "write", "compare"]))
        before, after = draw(st.floats(0, 5)), draw(st.floats(0, 5))
        new = f"value {number}"
        expected = draw(st.sampled_from([value, f"value {number - 1}", "nothing"]))
        argument = {"read": None, "compare": (expected, new)}.get(name, new)
        outcome, value = _outcome(name, argument, value)
        if name != "read" and draw(st.integers(0, 9)) == 0:
            outcome = UNKNOWN
        history.append(op(name, argument, outcome, number - before, number + after))
    return draw(st.permutations(history))


def _outcome(name: str, argument: Any, value: str | None) -> tuple[Any, str | None]:
    for outcome in (value, None, CONFLICT):
        try:
            return outcome, register(value, op(name, argument, outcome, 0, 0))
        except Refuted:
            continue
    raise AssertionError(f"{name} has no outcome")


def by_trying_all_orders(history: list[Operation]) -> bool:
    """The definition, in the plainest words, for small histories: operations without an outcome happen or do not."""

    def holds(state: str | None, rest: list[Operation]) -> bool:
        if not any(operation.is_known for operation in rest):
            return True
        end = min(operation.returned for operation in rest if operation.is_known)
        return any(
            leads_on(state, operation, [other for other in rest if other is not operation])
            for operation in rest
            if operation.called <= end
        )

    def leads_on(state: str | None, operation: Operation, rest: list[Operation]) -> bool:
        try:
            return holds(register(state, operation), rest)
        except Refuted:
            return False

    return holds(None, history)


@THOROUGH
@given(real_histories())
def test_what_one_register_did_is_linearizable(history: list[Operation]) -> None:
    assert linearizable(None, register, history)


@THOROUGH
@given(real_histories(), st.data())
def test_a_changed_outcome_is_judged_as_by_the_definition(history: list[Operation], data: st.DataObject) -> None:
    history = history[:5]
    at = data.draw(st.integers(0, len(history) - 1))
    old = history[at]
    assume(old.is_known)
    outcome = data.draw(st.sampled_from([f"value {data.draw(st.integers(0, 5))}", None]))
    outcome = outcome if old.name == "read" else data.draw(st.sampled_from([None, CONFLICT]))
    history[at] = op(old.name, old.argument, outcome, old.called, old.returned)
    assert linearizable(None, register, history) == by_trying_all_orders(history)


def test_a_stale_read_is_found() -> None:
    written = [op("create", "old", None, 0, 1), op("write", "new", None, 2, 3)]
    assert linearizable(None, register, [*written, op("read", None, "old", 2.5, 4)])
    assert not linearizable(None, register, [*written, op("read", None, "old", 3.5, 4)])


def test_a_read_that_goes_back_in_time_is_found() -> None:
    written = [op("create", "old", None, 0, 1), op("write", "new", None, 2, 9)]
    assert linearizable(None, register, [*written, op("read", None, "old", 3, 4), op("read", None, "new", 5, 6)])
    assert not linearizable(None, register, [*written, op("read", None, "new", 3, 4), op("read", None, "old", 5, 6)])


def test_a_lost_write_is_found() -> None:
    history = [op("create", "old", None, 0, 1), op("write", "new", None, 2, 3), op("compare", ("old", "x"), None, 4, 5)]
    assert not linearizable(None, register, history)


def test_a_refused_write_that_took_effect_is_found() -> None:
    history = [op("create", "old", None, 0, 1), op("compare", ("old", "new"), CONFLICT, 2, 3)]
    assert not linearizable(None, register, [*history, op("read", None, "new", 4, 5)])
    assert not linearizable(None, register, history), "nothing was there to conflict with"


def test_a_doubled_effect_is_found() -> None:
    history = [op("create", "a", None, 0, 1), op("write", "b", None, 2, 3), op("write", "c", None, 4, 5)]
    reads = [op("read", None, "c", 6, 7), op("read", None, "b", 8, 9)]
    assert not linearizable(None, register, [*history, *reads])


def test_a_write_without_an_answer_may_take_effect_late_or_never_but_not_twice() -> None:
    lost = op("write", "late", UNKNOWN, 1, 2)
    history = [op("create", "old", None, 0, 1), lost, op("read", None, "old", 3, 4)]
    assert linearizable(None, register, history)
    assert linearizable(None, register, [*history, op("read", None, "late", 5, 6)])
    changed_since = [op("read", None, "late", 5, 6), op("write", "new", None, 7, 8), op("read", None, "late", 9, 10)]
    assert not linearizable(None, register, [*history, *changed_since])


def test_lists_that_disagree_about_the_order_of_two_creates_are_found() -> None:
    added = [op("add", 0, None, 0, 9), op("add", 1, None, 0, 9)]
    assert linearizable(0, subset, [*added, op("read", None, 0b01, 1, 2), op("read", None, 0b11, 3, 4)])
    assert not linearizable(0, subset, [*added, op("read", None, 0b01, 1, 2), op("read", None, 0b10, 1, 2)])


def test_a_list_without_an_object_that_was_created_before_is_found() -> None:
    history = [op("add", 0, None, 0, 1), op("add", 1, UNKNOWN, 0, 1), op("remove", 0, None, 2, 3)]
    assert linearizable(0, subset, [*history, op("read", None, 0b10, 4, 5)])
    assert not linearizable(0, subset, [*history, op("read", None, 0b01, 4, 5)])
    assert not linearizable(0, subset, [*history, op("add", 0, CONFLICT, 4, 5)])
