"""Predicates on events, and log lines with their reconcile."""

from __future__ import annotations

import logging
from typing import Any

import orjson
import pytest

from pilothouse.client import Json
from pilothouse.operator import (
    AnnotationChanged,
    Event,
    GenerationChanged,
    LabelChanged,
    Predicate,
    ResourceVersionChanged,
    matches_labels,
)
from pilothouse.operator.controller import RECONCILE
from pilothouse.operator.logs import ReconcileFormatter
from pilothouse.operator.predicates import passes_all


def obj(**meta: Any) -> Json:
    return {"metadata": {"name": "a", **meta}}


SAME = obj(generation=1, resourceVersion="1", labels={"a": "1"}, annotations={"a": "1"})


@pytest.mark.parametrize(
    ("predicate", "change"),
    [
        (GenerationChanged, {"generation": 2}),
        (LabelChanged, {"labels": {}}),
        (AnnotationChanged, {"annotations": {}}),
        (ResourceVersionChanged, {"resourceVersion": "2"}),
    ],
)
def test_a_predicate_passes_its_own_change_only(predicate: Predicate, change: Json) -> None:
    changed = {"metadata": SAME["metadata"] | change}
    assert predicate(Event(SAME, changed))
    assert not predicate(Event(SAME, SAME))
    assert predicate(Event(None, SAME))
    assert predicate(Event(SAME, None))
    assert not (~predicate)(Event(SAME, changed))


def test_predicates_combine() -> None:
    event = Event(SAME, {"metadata": SAME["metadata"] | {"generation": 2}})
    assert (GenerationChanged | LabelChanged)(event)
    assert not (GenerationChanged & LabelChanged)(event)


def test_kinds_without_generation_always_pass() -> None:
    assert GenerationChanged(Event(obj(), obj()))


def test_an_object_that_leaves_a_selection_passes() -> None:
    web, other = obj(labels={"app": "web"}), obj(labels={"app": "db"})
    selected = matches_labels("app=web")
    assert selected(Event(web, other))
    assert selected(Event(other, web))
    assert not selected(Event(other, other))


def test_the_beginning_of_a_deletion_passes_every_predicate() -> None:
    deleting = obj(generation=1, deletionTimestamp="2026-01-01T00:00:00Z")
    never = Predicate(lambda event: False)
    assert passes_all([never], Event(obj(generation=1), deleting))
    assert not passes_all([never], Event(deleting, deleting))


def test_an_event_passes_a_predicate_that_raises() -> None:
    broken = Predicate(lambda event: bool(event.object["spec"]["missing"]))
    assert passes_all([broken], Event(None, obj()))


def test_a_log_line_has_the_object_and_the_reconcile() -> None:
    record = logging.makeLogRecord({"name": "x", "levelname": "INFO", "msg": "made %s", "args": ("it",), "size": 3})
    token = RECONCILE.set({"controller": "boat", "object": "default/ann", "reconcileID": "1"})
    try:
        line = orjson.loads(ReconcileFormatter("json").format(record))
        text = ReconcileFormatter("text").format(record)
    finally:
        RECONCILE.reset(token)
    assert {key: line[key] for key in ("level", "msg", "controller", "object", "reconcileID", "size")} == {
        "level": "info",
        "msg": "made it",
        "size": 3,
        "controller": "boat",
        "object": "default/ann",
        "reconcileID": "1",
    }
    assert text.endswith("INFO x: made it controller=boat object=default/ann reconcileID=1 size=3")
