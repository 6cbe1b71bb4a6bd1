"""Events in their two forms, with each group's own rules."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded

from pilothouse.kube.events.events import EVENTS, CoreEventStrategy, EventStrategy, from_core, to_core
from pilothouse.machinery.objects import Json

MOMENT = "2024-01-01T00:00:00.000000Z"
NEW: Json = {
    "eventTime": MOMENT,
    "reportingComponent": "example.com/c",
    "reportingInstance": "i",
    "action": "Bind",
    "reason": "R",
    "type": "Normal",
}


def event(**fields: Any) -> Json:
    return decoded(EVENTS, {"involvedObject": {"kind": "Pod", "namespace": "default"}, **fields})


def refused(strategy: CoreEventStrategy, obj: Json) -> list[str]:
    return [str(error) for error in strategy.validate(obj)]


def test_what_one_group_stores_the_other_reads_back() -> None:
    stored = event(message="m", count=3, source={"component": "k"}, firstTimestamp="2024-01-01T00:00:00Z", reason="R")
    shown = from_core(dict(stored))
    assert shown["apiVersion"] == "events.k8s.io/v1"
    assert (shown["note"], shown["deprecatedCount"], shown["regarding"]["kind"]) == ("m", 3, "Pod")
    assert to_core(dict(shown)) == stored


def test_old_events_must_be_in_the_namespace_of_their_object() -> None:
    core = CoreEventStrategy()
    assert refused(core, event()) == []
    assert refused(core, event(involvedObject={"kind": "Node"})) == []
    assert refused(core, event(involvedObject={"namespace": "elsewhere"})) == [
        'involvedObject.namespace: Invalid value: "elsewhere": does not match event.namespace'
    ]


def test_an_event_with_a_time_says_who_reports_what() -> None:
    assert refused(CoreEventStrategy(), event(**NEW)) == []
    missing = refused(CoreEventStrategy(), event(eventTime=MOMENT))
    assert [line.split(":")[0] for line in missing] == [
        "reportingComponent",
        "reportingComponent",
        "reportingComponent",
        "reportingInstance",
        "action",
        "reason",
    ]
    assert refused(EventStrategy(), event(**NEW | {"reportingComponent": "a b"}))[0].startswith("reportingController:")


@pytest.mark.parametrize(
    ("changes", "refusals"),
    [
        ({}, []),
        ({"type": "Odd"}, ['type: Invalid value: "": has invalid value: Odd']),
        ({"count": 2}, ['count: Invalid value: "": needs to be unset']),
        ({"source": {"host": "h"}}, ['source: Invalid value: "": needs to be unset']),
        (
            {"series": {"count": 1}},
            ['series.count: Invalid value: "": should be at least 2', "series.lastObservedTime: Required value"],
        ),
        ({"action": "x" * 129}, ['action: Invalid value: "": can have at most 128 characters']),
        ({"message": "x" * 1025}, ['message: Invalid value: "": can have at most 1024 characters']),
    ],
)
def test_the_newer_group_is_strict(changes: Json, refusals: list[str]) -> None:
    assert refused(EventStrategy(), event(**NEW | changes)) == refusals


def _update(strategy: CoreEventStrategy, **changes: Any) -> list[str]:
    old, new = event(**NEW), event(**NEW | changes)
    for obj in (old, new):
        obj["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    return [str(error) for error in strategy.validate_update(new, old)]


def test_only_the_series_changes_through_the_newer_group() -> None:
    assert _update(EventStrategy(), series={"count": 2, "lastObservedTime": MOMENT}) == []
    assert _update(EventStrategy(), reason="Other") == ['reason: Invalid value: "Other": field is immutable'] * 2
    (found,) = _update(EventStrategy(), involvedObject={"kind": "Pod", "name": "p", "namespace": "default"})
    assert found.startswith('involvedObject: Invalid value: {"Kind":"Pod","Namespace":"default","Name":"p","UID":""')
    assert _update(CoreEventStrategy(), reason="Other", message="m") == []


def test_an_event_ends_by_itself() -> None:
    assert CoreEventStrategy(60).ttl(event()) == EventStrategy(60).ttl(event()) == 60


def test_the_table_shows_series_counts_and_sources() -> None:
    cells = {column.name: column.cell for column in EVENTS.columns}
    single = event(involvedObject={"kind": "Pod", "name": "p"}, source={"component": "k", "host": "h"})
    assert [cells[name](single) for name in ("Count", "Object", "Source")] == [1, "pod/p", "k, h"]
    series = event(**NEW, series={"count": 7, "lastObservedTime": MOMENT})
    assert [cells[name](series) for name in ("Count", "Object", "Source")] == [7, "pod", "example.com/c, i"]


def test_events_are_found_by_who_reported_them() -> None:
    assert EVENTS.fields is not None
    assert EVENTS.fields(event(**NEW))["source"] == "example.com/c"
    assert EVENTS.fields(event(source={"component": "k"}))["source"] == "k"
