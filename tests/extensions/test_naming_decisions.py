"""Which names a definition gets."""

from __future__ import annotations

from pilothouse.extensions.controllers.naming import NamesOfOthers, Naming, TakenNames, accepted_names
from pilothouse.extensions.controllers.naming import decide as decide_with
from pilothouse.machinery.objects import Json

NAMES: Json = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}


def asking(names: Json, accepted: Json | None = None) -> Json:
    return {"spec": {"names": names}, "status": {"acceptedNames": accepted or {"plural": "", "kind": ""}}}


def decide(definition: Json, others: list[Json]) -> Naming:
    taken = TakenNames()
    for number, other in enumerate(others):
        taken.record(f"other{number}", "example.com", accepted_names(other), after=1)
    return decide_with(definition, taken.by_others("mine", "example.com", definition["spec"]["names"]))


def test_free_names_are_accepted() -> None:
    wanted = NAMES | {"shortNames": ["wd"], "categories": ["all"]}
    naming = decide(asking(wanted), [])
    assert (naming.accepted, naming.condition.reason) == (wanted, "NoConflicts")


def test_taken_name_is_rejected_and_free_names_are_accepted() -> None:
    other = asking(NAMES, NAMES | {"shortNames": ["wd"]})
    wanted = {"plural": "wheels", "singular": "wheel", "kind": "Wheel", "listKind": "WheelList", "shortNames": ["wd"]}
    naming = decide(asking(wanted), [other])
    assert naming.accepted == {key: value for key, value in wanted.items() if key != "shortNames"}
    assert (naming.condition.status, naming.condition.reason) == ("False", "ShortNamesConflict")
    assert naming.condition.message == '"wd" is already in use'


def test_a_plural_clashes_with_a_short_name() -> None:
    other = asking(NAMES, NAMES | {"shortNames": ["wheels"]})
    wanted = {"plural": "wheels", "singular": "wheel", "kind": "Wheel", "listKind": "WheelList"}
    assert decide(asking(wanted), [other]).condition.reason == "PluralConflict"


def test_accepted_name_stays_with_its_definition() -> None:
    mine = asking(NAMES | {"shortNames": ["wd", "w"]}, NAMES | {"shortNames": ["wd"]})
    other = asking(NAMES, {"plural": "others", "kind": "Other", "shortNames": ["x"]})
    assert decide(mine, [other]).accepted["shortNames"] == ["wd", "w"]


def test_name_is_free_when_its_last_holder_is_deleted() -> None:
    taken = TakenNames()
    for name in ("a", "b"):
        taken.record(name, "example.com", NAMES, after=1)
    taken.forget("a")
    assert taken.by_others("c", "example.com", NAMES).kinds == {"Widget", "WidgetList"}
    taken.forget("b")
    assert taken.by_others("c", "example.com", NAMES) == NamesOfOthers()


def test_stale_event_does_not_revert_a_decision() -> None:
    taken = TakenNames()
    taken.record("a", "example.com", NAMES, after=7)
    taken.record("a", "example.com", {"plural": "", "kind": ""}, after=6)
    assert "widgets" in taken.by_others("b", "example.com", NAMES).resources
    taken.record("a", "example.com", {"plural": "", "kind": ""}, after=8)
    assert taken.by_others("b", "example.com", NAMES) == NamesOfOthers()
