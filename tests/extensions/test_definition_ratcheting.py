"""Faults that a definition was stored with stay allowed, and new ones do not."""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import Any

import pytest
from custom_resources import definition, version

from pilothouse.extensions.controllers.conditions import condition_of
from pilothouse.extensions.customresourcedefinitions.strategy import DefinitionStrategy
from pilothouse.machinery.objects import Json

STRATEGY = DefinitionStrategy()


def stored(*versions: Json, established: bool = True, **spec: Any) -> Json:
    obj = definition(*versions, **spec)
    obj["status"] = {}
    STRATEGY.default(obj)
    STRATEGY.prepare_for_create(obj)
    obj["metadata"] |= {"resourceVersion": "1", "uid": "u", "creationTimestamp": "2024-01-01T00:00:00Z"}
    if established:
        obj["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    return obj


def errors_on_update(new: Json, old: Json) -> list[str]:
    new = deepcopy(new)
    STRATEGY.prepare_for_update(new, old)
    return [str(error) for error in STRATEGY.validate_update(new, old)]


def with_field(schema: Json, **spec: Any) -> Json:
    return stored(version(schema={"type": "object", "properties": {"a": schema}}), **spec)


def with_conversion(*, reviews: list[str], bundle: str = "", established: bool = True) -> Json:
    client = {"url": "https://example.com/convert", "caBundle": base64.b64encode(bundle.encode()).decode()}
    webhook = {"clientConfig": client, "conversionReviewVersions": reviews}
    return stored(conversion={"strategy": "Webhook", "webhook": webhook}, established=established)


PRESERVING = {"preserveUnknownFields": True}
GOOD = {"type": "string"}
SET_OF_OBJECTS = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}
MAP_WITHOUT_KEYS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "properties": {"k": {"type": "string"}}},
}
UNKNOWN_IN_DEFAULT = {"type": "object", "properties": {"b": {"type": "string"}}, "default": {"c": 1}}
DEAR_RULE = {
    "type": "array",
    "maxItems": 2000,
    "items": {"type": "string", "maxLength": 10},
    "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x == y || x != y))"}],
}
MANY_FIELDS = [f"f{number}" for number in range(9)]


def with_selectable_fields(names: list[str]) -> Json:
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    return stored(version(schema=schema, selectableFields=[{"jsonPath": f".{name}"} for name in names]))


FAULTS = {
    "a type that OpenAPI does not know": (
        with_field({"type": "strong"}, **PRESERVING),
        with_field(GOOD, **PRESERVING),
        "Unsupported value",
    ),
    "a schema that is not structural": (
        with_field({}, **PRESERVING),
        with_field(GOOD, **PRESERVING),
        "must not be empty for specified object fields",
    ),
    "a set of objects that merge": (with_field(SET_OF_OBJECTS), with_field(GOOD), "must be atomic as item of a list"),
    "a map whose keys may be missing": (with_field(MAP_WITHOUT_KEYS), with_field(GOOD), "must have a default or be"),
    "a default with unknown fields": (with_field(UNKNOWN_IN_DEFAULT), with_field(GOOD), "must not have unknown fields"),
    "a rule that costs too much": (with_field(DEAR_RULE), with_field(GOOD), "exceeds budget"),
    "reviews that nobody understands": (
        with_conversion(reviews=["v9"]),
        with_conversion(reviews=["v1"]),
        "must include at least one of v1, v1beta1",
    ),
    "a CA bundle that nobody can read": (
        with_conversion(reviews=["v1"], bundle="rubbish"),
        with_conversion(reviews=["v1"]),
        "unable to load root certificates: unable to parse bytes as PEM block",
    ),
    "too many selectable fields": (
        with_selectable_fields(MANY_FIELDS),
        with_selectable_fields(MANY_FIELDS[:8]),
        "must have at most 8 items",
    ),
}


@pytest.mark.parametrize(("faulty", "good", "words"), FAULTS.values(), ids=list(FAULTS))
def test_a_stored_fault_does_not_bar_another_change_but_may_not_come_new(faulty: Json, good: Json, words: str) -> None:
    changed = deepcopy(faulty)
    changed["spec"]["names"]["shortNames"] = ["w"]
    assert errors_on_update(changed, faulty) == []
    assert errors_on_update(good, faulty) == []
    found = errors_on_update(faulty, good)
    assert any(words in error for error in found), found


def test_expensive_stored_rule_is_tolerated_while_its_schema_is_unchanged() -> None:
    old = with_field(DEAR_RULE)
    new = deepcopy(old)
    new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "other"
    assert any("exceeds budget" in error for error in errors_on_update(new, old))


def test_an_unreadable_ca_bundle_is_allowed_until_the_definition_is_established() -> None:
    new = with_conversion(reviews=["v1"], bundle="rubbish", established=False)
    assert errors_on_update(new, with_conversion(reviews=["v1"], established=False)) == []


def test_missing_schemas_stay_allowed_only_where_unknown_fields_are_kept() -> None:
    old = stored({"name": "v1", "served": True, "storage": True}, **PRESERVING)
    assert errors_on_update(old, old) == []
    pruning = deepcopy(old)
    pruning["spec"]["preserveUnknownFields"] = False
    (error,) = errors_on_update(pruning, old)
    assert "spec.versions[0].schema.openAPIV3Schema: Required value: because otherwise all fields are pruned" in error


def test_pruning_requires_a_structural_schema() -> None:
    old = with_field({}, **PRESERVING)
    new = deepcopy(old)
    new["spec"]["preserveUnknownFields"] = False
    assert any("must not be empty for specified object fields" in error for error in errors_on_update(new, old))


def test_defaults_need_pruning() -> None:
    old = with_field(GOOD, **PRESERVING)
    new = with_field(GOOD | {"default": "x"}, **PRESERVING)
    wanted = "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema"
    assert wanted in errors_on_update(new, old)


def test_a_good_schema_has_no_condition() -> None:
    assert condition_of(stored()["spec"]) is None


def test_violations_of_the_structure_are_told_in_a_condition() -> None:
    condition = condition_of(with_field({}, **PRESERVING)["spec"])
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "Violations")
    assert condition.message == (
        "[spec.preserveUnknownFields: Invalid value: true: must be false, "
        "spec.versions[0].schema.openAPIV3Schema.properties[a].type: "
        "Required value: must not be empty for specified object fields]"
    )


def test_a_schema_that_cannot_be_checked_has_an_unknown_condition() -> None:
    condition = condition_of(with_field({"$ref": "#/x"}, **PRESERVING)["spec"])
    assert condition is not None
    assert (condition.status, condition.reason) == ("Unknown", "StructuralError")
    assert condition.message.startswith("failed to check validation schema for version v1: ")
