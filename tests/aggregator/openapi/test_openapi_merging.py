"""Merging OpenAPI v2 documents: nothing that is there changes, and nothing that comes is mistaken for it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swagger import spec

from pilothouse.aggregator.openapi.spec import MalformedSpec, Spec, SpecReference, merge, references

KINDS = "x-kubernetes-group-version-kind"
TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "number"}, {"type": "boolean"}

_SCHEMAS = st.sampled_from([TEXT, NUMBER, FLAG, {"$ref": "#/definitions/io.a.X"}, {"$ref": "#/definitions/io.a.Y"}])
_DEFINITIONS = st.dictionaries(st.sampled_from(["X", "Y", "X_v2"]), _SCHEMAS, min_size=1)


def answered(document: Spec, path: str) -> Any:
    """The name of the definition that a path answers with."""
    response = document.paths[path]["get"]["responses"]["200"]
    return response["schema"]["$ref"].removeprefix("#/definitions/")


def dangling(document: Spec) -> set[SpecReference]:
    return {
        each for each in references(document.paths) | references(document.definitions) if not _there(document, each)
    }


def _there(document: Spec, reference: SpecReference) -> bool:
    return reference.name in (document.definitions if reference.section == "definitions" else document.parameters)


def test_a_definition_of_the_same_name_and_content_is_shared() -> None:
    merged = merge(spec("a.io/v1", Thing=TEXT), spec("b.io/v1", Thing=TEXT))
    assert merged.definitions == {"io.a.Thing": TEXT}
    assert answered(merged, "/apis/b.io/v1/things") == "io.a.Thing"


def test_a_definition_of_the_same_name_and_another_content_is_renamed_everywhere_it_is_referred_to() -> None:
    nested = {"type": "object", "properties": {"thing": {"$ref": "#/definitions/io.a.Thing"}}}
    merged = merge(spec("a.io/v1", Thing=TEXT), spec("b.io/v1", Thing=NUMBER, Box=nested))
    assert merged.definitions["io.a.Thing_v2"] == NUMBER
    assert merged.definitions["io.a.Box"]["properties"]["thing"] == {"$ref": "#/definitions/io.a.Thing_v2"}
    assert answered(merged, "/apis/b.io/v1/things") == "io.a.Thing_v2"
    assert answered(merged, "/apis/a.io/v1/things") == "io.a.Thing"


def test_a_third_document_shares_what_the_second_was_renamed_to() -> None:
    merged = merge(spec("a.io/v1", Thing=TEXT), spec("b.io/v1", Thing=NUMBER))
    merged = merge(merged, spec("c.io/v1", Thing=NUMBER))
    merged = merge(merged, spec("d.io/v1", Thing=FLAG))
    assert [answered(merged, f"/apis/{group}.io/v1/things") for group in "abcd"] == [
        "io.a.Thing",
        "io.a.Thing_v2",
        "io.a.Thing_v2",
        "io.a.Thing_v3",
    ]


def test_a_path_that_is_there_stays_and_brings_no_definitions() -> None:
    first = spec("a.io/v1", Thing=TEXT)
    merged = merge(first, spec("a.io/v1", Thing=NUMBER, Other=FLAG))
    assert merged.definitions == {"io.a.Thing": TEXT, "io.a.Other": FLAG}
    assert merge(first, spec("a.io/v1", Thing=NUMBER)) is first


def test_a_shared_definition_is_of_the_kinds_of_both() -> None:
    first = {**TEXT, KINDS: [{"group": "b.io", "version": "v1", "kind": "DeleteOptions"}]}
    second = {**TEXT, KINDS: [{"group": "a.io", "version": "v1", "kind": "DeleteOptions"}]}
    merged = merge(spec("b.io/v1", Options=first), spec("a.io/v1", Options=second))
    assert [kind["group"] for kind in merged.definitions["io.a.Options"][KINDS]] == ["a.io", "b.io"]
    assert len(first[KINDS]) == 1


def test_parameters_that_clash_are_renamed_too() -> None:
    def with_parameter(group: str, kind: str) -> Spec:
        parameter = {"name": "limit", "in": "query", "type": kind}
        path = {"get": {"parameters": [{"$ref": "#/parameters/limit-x"}], "responses": {}}}
        return Spec({}, {f"/apis/{group}/v1/things": path}, {}, {"limit-x": parameter})

    merged = merge(with_parameter("a.io", "integer"), with_parameter("b.io", "string"))
    assert merged.parameters["limit-x_v2"]["type"] == "string"
    assert merged.paths["/apis/b.io/v1/things"]["get"]["parameters"] == [{"$ref": "#/parameters/limit-x_v2"}]


def test_filtering_drops_what_only_the_dropped_paths_used() -> None:
    inner = {"properties": {"inner": {"$ref": "#/definitions/io.a.Inner"}}}
    document = spec("a.io/v1", Thing=inner, Other=FLAG)
    document.definitions["io.a.Inner"] = TEXT
    document.definitions["io.a.Unused"] = TEXT
    kept = document.filtered(lambda path: path.endswith("things"))
    assert kept.definitions.keys() == {"io.a.Thing", "io.a.Inner", "io.a.Unused"}
    assert document.filtered(lambda path: path.endswith("others")).definitions.keys() == {"io.a.Other", "io.a.Unused"}


@settings(max_examples=60)
@given(_DEFINITIONS, _DEFINITIONS, _DEFINITIONS)
def test_merging_keeps_every_path_and_leaves_no_reference_without_its_definition(
    first: dict[str, Any], second: dict[str, Any], third: dict[str, Any]
) -> None:
    specs = [
        spec(f"{name}.io/v1", **definitions) for name, definitions in zip("abc", (first, second, third), strict=True)
    ]
    for each in specs:
        each.definitions.setdefault("io.a.X", TEXT)
        each.definitions.setdefault("io.a.Y", NUMBER)
    merged = merge(merge(specs[0], specs[1]), specs[2])
    assert merged.paths.keys() == {path for each in specs for path in each.paths}
    assert not dangling(merged)
    for name, definition in specs[0].definitions.items():
        assert merged.definitions[name] == definition


@settings(max_examples=60)
@given(_DEFINITIONS, _DEFINITIONS)
def test_each_path_still_answers_with_the_content_that_it_had(first: dict[str, Any], second: dict[str, Any]) -> None:
    plain = {name: schema for name, schema in second.items() if "$ref" not in schema}
    other = spec("b.io/v1", **plain)
    merged = merge(spec("a.io/v1", **first), other)
    for path in other.paths:
        assert merged.definitions[answered(merged, path)] == other.definitions[answered(other, path)]


@settings(max_examples=30)
@given(_DEFINITIONS, _DEFINITIONS)
def test_renames_are_the_same_every_time(first: dict[str, Any], second: dict[str, Any]) -> None:
    turned = dict(reversed(second.items()))
    one = merge(spec("a.io/v1", **first), spec("b.io/v1", **second))
    assert one.encode() == merge(spec("a.io/v1", **first), spec("b.io/v1", **turned)).encode()


@pytest.mark.parametrize(
    "document", [b"{", b"[]", b'{"paths": []}', b'{"paths": {"/": 1}}', b'{"definitions": {"a": 1}}']
)
def test_what_is_no_document_is_refused(document: bytes) -> None:
    with pytest.raises(MalformedSpec):
        Spec.parse(document)
