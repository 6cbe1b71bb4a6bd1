"""Hypothesis strategies for JSON objects of any built-in message, in the form in which Go prints them."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from pilothouse.machinery.durations import format_duration
from pilothouse.machinery.generated import packages
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import format_micro_time, format_time
from pilothouse.machinery.wire_facts import FieldFacts, Label, facts_of, is_kind, is_list, messages_of

META = "k8s.io.apimachinery.pkg.apis.meta.v1"
MAX_DEPTH = 4
_ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)  # null in JSON

_TEXT = st.text("abzé -/☃", max_size=4) | st.just("x" * 200)
_MOMENTS = st.datetimes(timezones=st.just(UTC)).filter(lambda moment: moment.replace(microsecond=0) != _ZERO_TIME)
_JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers(-5, 5) | _TEXT | st.just(0.5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXT, inner, max_size=2),
    max_leaves=4,
)
_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": _TEXT,
    "bool": st.booleans(),
    "int32": st.integers(-(1 << 31), (1 << 31) - 1),
    "int64": st.integers(-(1 << 63), (1 << 63) - 1),
    "double": st.floats(-1e9, 1e9, exclude_min=True).map(lambda number: int(number) if number.is_integer() else number),
    "bytes": st.binary(max_size=4).map(lambda raw: b64encode(raw).decode()),
}
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    f"{META}.Time": _MOMENTS.map(format_time),
    f"{META}.MicroTime": _MOMENTS.map(format_micro_time),
    f"{META}.Duration": st.integers(-(1 << 62), 1 << 62).map(format_duration),
    f"{META}.FieldsV1": _JSON_VALUES,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _JSON_VALUES,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": st.sampled_from(["0", "1", "100m", "1Gi", "-2k", "1e3"]),
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": st.integers(-(1 << 31), (1 << 31) - 1) | _TEXT,
}
KINDS = sorted((package, name) for package in packages() for name in messages_of(package) if is_kind(package, name))


@st.composite
def objects(draw: st.DrawFn, package: str, message: str, depth: int = 0) -> Json:
    """Fields that Go always prints are there; of the others a few are drawn."""
    facts = facts_of(package, message)
    optional = [field.name for field in facts.values() if not _is_required(field)]
    chosen = draw(st.sets(st.sampled_from(optional), max_size=3)) if optional and depth < MAX_DEPTH else set()
    out: Json = {}
    for field in facts.values():
        if field.inline:
            out |= draw(objects(*_split(field.type), depth=depth + 1))
        elif _is_required(field) or field.name in chosen:
            value = draw(_field(field, depth))
            if value is not _ABSENT:
                out[field.name] = value
    return out


_ABSENT = object()


def _is_required(field: FieldFacts) -> bool:
    """Whether Go prints the field even when it is zero: structs by value, and whatever lacks omitempty."""
    by_value = field.label is Label.OPTIONAL and not field.pointer and "." in field.type and not _is_slice(field)
    return field.inline or ((by_value or not field.omitempty) and not field.omitzero)


def _is_slice(field: FieldFacts) -> bool:
    return field.type == "bytes" or ("." in field.type and is_list(*_split(field.type)))


def _field(field: FieldFacts, depth: int) -> st.SearchStrategy[Any]:
    values = _values(field.type, depth)
    omit = field.omitempty and not field.pointer
    empty = st.just(_ABSENT if field.omitempty else None)
    if field.label is not Label.OPTIONAL:
        many = st.lists(values, max_size=2) if field.label is Label.REPEATED else _sorted_maps(values)
        is_items = field.name == "items" and not field.omitempty
        return many.flatmap(lambda found: st.just(found) if found or is_items else empty)
    if field.pointer and not field.omitempty:
        return st.none() | values
    if field.type in _SCALARS and omit:
        return values.map(lambda value: value or _ABSENT)
    return values


def _sorted_maps(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(_TEXT, values, max_size=2).map(lambda found: dict(sorted(found.items())))


def _values(type_name: str, depth: int) -> st.SearchStrategy[Any]:
    if type_name in _SCALARS:
        return _SCALARS[type_name]
    if type_name in _VALUES:
        return _VALUES[type_name]
    package, message = _split(type_name)
    schema = f"{package}.JSONSchemaProps"
    match message:
        case "JSON":
            return _JSON_VALUES
        case "JSONSchemaPropsOrBool":
            return st.booleans() | _values(schema, depth + 1)
        case "JSONSchemaPropsOrArray":
            return _values(schema, depth + 1) | st.lists(_values(schema, depth + 2), min_size=1, max_size=2)
        case "JSONSchemaPropsOrStringArray":
            return _values(schema, depth + 1) | st.lists(_TEXT, min_size=1, max_size=2)
    if is_list(package, message):
        return st.lists(_TEXT, max_size=2)
    return st.deferred(lambda: objects(package, message, depth=depth + 1))


def _split(type_name: str) -> tuple[str, str]:
    package, _, message = type_name.rpartition(".")
    return package, message
