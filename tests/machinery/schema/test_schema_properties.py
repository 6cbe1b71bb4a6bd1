"""Laws of decoding, on values made from the type trees themselves, right and wrong."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.examine import examine
from pilothouse.machinery.schema.nodes import NodeKind, Scalar, TypeNode
from pilothouse.machinery.schema.object_type import DecodeError, ObjectType
from pilothouse.machinery.schema.scalars import Mismatch


def object_type(api_version: str, name: str) -> ObjectType:
    found = types.of(GroupVersion.parse(api_version).kind(name))
    assert found is not None
    return found


KINDS = [
    object_type("v1", "Pod"),
    object_type("v1", "Secret"),
    object_type("v1", "Service"),
    object_type("v1", "Event"),
    object_type("apps/v1", "Deployment"),
    object_type("batch/v1", "CronJob"),
    object_type("rbac.authorization.k8s.io/v1", "ClusterRole"),
    object_type("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    object_type("autoscaling/v2", "HorizontalPodAutoscaler"),
]
UNIONS = {"items", "additionalProperties", "additionalItems", "dependencies"}
NONSENSE = st.sampled_from([None, True, 0, -1, 1.5, 1 << 40, "", "x", "1", [], [None], {}, {"a": 1}])
LEAVES: dict[Scalar | None, st.SearchStrategy[Any]] = {
    Scalar.STRING: st.sampled_from(["", "a", "b"]),
    Scalar.BOOL: st.booleans(),
    Scalar.INT32: st.integers(-1, 1),
    Scalar.INT64: st.integers(-1, 1),
    Scalar.FLOAT64: st.sampled_from([0, 1.0, 0.5]),
    Scalar.BYTES: st.sampled_from(["", "aGk=", "aG\nk="]),
    Scalar.TIME: st.sampled_from(["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5+01:00", "0001-01-01T00:00:00Z"]),
    Scalar.MICRO_TIME: st.sampled_from(["2024-01-01T00:00:00.000001Z"]),
    Scalar.QUANTITY: st.sampled_from(["1000m", "1Gi", 5, 0.5]),
    Scalar.INT_OR_STRING: st.sampled_from([0, 80, "", "http"]),
}


@st.composite
def values(draw: st.DrawFn, node: TypeNode, *, depth: int = 7, wrong: int = 0) -> Any:
    """A value of the type; of a hundred parts, about `wrong` are nonsense, and as many fields unknown."""
    chance = draw(st.integers(0, 99))
    if chance < wrong or depth == 0:
        return draw(NONSENSE) if wrong else None
    if node.kind is NodeKind.ANY or (node.kind is NodeKind.SCALAR and node.element):
        return draw(st.sampled_from([None, True, {"type": "string"}]))
    if node.kind is NodeKind.SCALAR:
        return draw(LEAVES[node.scalar])
    if node.kind is NodeKind.STRUCT:
        names = draw(st.lists(st.sampled_from(sorted(node.fields)), max_size=4, unique=True)) if node.fields else []
        out = {name: draw(values(node.fields[name].node, depth=depth - 1, wrong=wrong)) for name in names}
        return out | ({"bogus": 1} if chance >= 100 - wrong else {})
    assert node.element is not None
    items = [draw(values(node.element, depth=depth - 1, wrong=wrong)) for _ in range(draw(st.integers(0, 2)))]
    return items if node.kind is NodeKind.LIST else {str(at): item for at, item in enumerate(items)}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.data())
def test_decoding_is_idempotent(kind: ObjectType, data: st.DataObject) -> None:
    once = kind.decode(data.draw(values(kind.node)) or {}).obj
    again = kind.decode(copy.deepcopy(once))
    assert again.obj == once
    assert again.strict_errors == ()


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(KINDS), st.data())
def test_fast_path_accepts_only_values_without_problems(kind: ObjectType, data: st.DataObject) -> None:
    value = data.draw(values(kind.node, wrong=4)) or {}
    report = examine(kind.node, value)
    try:
        kind.fit(copy.deepcopy(value))
    except Mismatch:
        # A quantity that is a float, and an unknown field in a union, take the exact way without being wrong.
        assert report.error or report.strict or is_exceptional(value)
    else:
        assert (report.error, report.strict) == ("", ())


def is_exceptional(value: Any) -> bool:
    if isinstance(value, dict):
        return not UNIONS.isdisjoint(value) or any(map(is_exceptional, value.values()))
    return any(map(is_exceptional, value)) if isinstance(value, list) else isinstance(value, float)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.data())
def test_unknown_fields_never_survive_and_are_always_told(kind: ObjectType, data: st.DataObject) -> None:
    value = data.draw(values(kind.node)) or {}
    places = [value, *(value[name] for name in ("metadata", "spec") if isinstance(value.get(name), dict))]
    for place in places:
        place["bogus"] = {"deep": [1]}
    found = kind.decode(value)
    assert len(found.strict_errors) == len(places)
    assert "bogus" not in repr(found.obj)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(KINDS), st.data())
def test_converter_and_decoder_agree_on_valid_values(kind: ObjectType, data: st.DataObject) -> None:
    value = data.draw(values(kind.node)) or {}
    assert kind.convert(copy.deepcopy(value)).obj == kind.decode(value).obj


def test_partially_decoded_invalid_value_stays_invalid() -> None:
    kind = object_type("v1", "Pod")
    value = {"metadata": {"name": None, "labels": {}}, "spec": {"containers": [{"name": 1}]}}
    with pytest.raises(Mismatch):
        kind.fit(value)
    with pytest.raises(DecodeError, match=r"Container\.spec\.containers\.name of type string"):
        kind.decode(value)
