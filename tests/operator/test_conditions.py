"""Conditions against a model: each type once, and a time that moves with the status only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.operator import Condition, Conditions
from pilothouse.operator.controller import merged_status

TYPES, STATUSES, REASONS = st.sampled_from("ABC"), st.sampled_from([True, False, None]), st.sampled_from(["X", "Y"])
START = datetime(2026, 1, 1, tzinfo=UTC)


@given(st.lists(st.tuples(TYPES, STATUSES, REASONS, st.integers(1, 3))))
def test_conditions_follow_their_model(steps: list[tuple[str, bool | None, str, int]]) -> None:
    now = START
    conditions = Conditions(clock=lambda: now)
    model: dict[str, tuple[bool | None, str, int, datetime]] = {}
    for type_, status, reason, generation in steps:
        now += timedelta(seconds=1)
        conditions.generation = generation
        old = model.get(type_)
        moment = old[3] if old is not None and old[0] == status else now
        new = (status, reason, generation, moment)
        assert conditions.set(Condition(type_, status, reason)) == (old != new)
        model[type_] = new
        assert conditions.is_true(type_) == (status is True)
    assert [one.type for one in conditions] == [*model]
    for one in conditions:
        status, reason, generation, moment = model[one.type]
        assert one == Condition(one.type, status, reason, observed_generation=generation, last_transition_time=moment)


def test_a_removed_condition_is_gone_and_removing_is_idempotent() -> None:
    conditions = Conditions([Condition("A", True, "X"), Condition("B", True, "X")])
    conditions.remove("A")
    conditions.remove("A")
    assert [one.type for one in conditions] == ["B"]


STATUS = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(["up", "down"]),
        "count": st.integers(0, 2),
        "conditions": st.lists(
            st.fixed_dictionaries({"type": TYPES, "status": st.sampled_from(["True", "False"])}),
            unique_by=lambda one: str(one["type"]),
            min_size=1,
        ),
    },
)


@given(before=STATUS, after=STATUS, theirs=STATUS)
def test_a_merged_status_has_our_changes_and_keeps_theirs(
    before: dict[str, object], after: dict[str, object], theirs: dict[str, object]
) -> None:
    """Each field and each condition is ours where we changed it, and theirs elsewhere."""
    merged, ours, old, other = map(_flat, (merged_status(theirs, before, after), after, before, theirs))
    for key in {*merged, *ours, *old, *other}:
        expected = ours.get(key) if ours.get(key) != old.get(key) else other.get(key)
        assert merged.get(key) == expected, key


@given(before=STATUS, after=STATUS)
def test_without_a_concurrent_change_the_merged_status_is_ours(
    before: dict[str, object], after: dict[str, object]
) -> None:
    assert _flat(merged_status(before, before, after)) == _flat(after)


def _flat(status: dict[str, object]) -> dict[str, object]:
    fields = {key: value for key, value in status.items() if key != "conditions"}
    conditions = status.get("conditions") or []
    assert isinstance(conditions, list)
    return fields | {f"condition {one['type']}": one["status"] for one in conditions}
