"""Between instances and JSON, both ways."""

from __future__ import annotations

import copy
import enum
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Annotated, Any, Literal, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.builder.types.markers import Default, Name, Nullable
from pilothouse.builder.types.wire import from_wire, schema_of, to_wire
from pilothouse.extensions.schema.compiled import compile_schema

NOON = datetime(2024, 2, 1, 12, tzinfo=UTC)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.StrEnum):
    UNKNOWN = ""
    LARGE = "large"


@dataclass
class Port:
    name: str
    number: int = 80
    target: int | str = 0


@dataclass
class Limits:
    low: int = 0
    high: float = 0


@dataclass
class Strategy:
    max_surge: int = 1
    kind: Literal["Rolling", "Recreate"] = "Rolling"


@dataclass
class Spec:
    title: str
    color: Color
    replicas: int = 1
    size: Size = Size.UNKNOWN
    cluster_ip: Annotated[str, Name("clusterIP")] = ""
    paused: bool = False
    enabled: bool = True
    started: datetime | None = None
    day: date | None = None
    secret: bytes = b""
    note: str | None = None
    maybe: Annotated[int | None, Nullable()] = 3
    zero: Annotated[int, Default(0)] = 0
    ports: list[Port] = field(default_factory=list)
    by_name: dict[str, Port] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    other_limits: Limits | None = None
    strategy: Strategy = field(default_factory=Strategy)
    extra: dict[str, Any] = field(default_factory=dict)


ALWAYS = {
    "title": "a",
    "color": "red",
    "replicas": 1,
    "enabled": True,
    "maybe": 3,
    "zero": 0,
    "strategy": {"maxSurge": 1, "kind": "Rolling"},
}
"""What is always written of a Spec."""


SCHEMA = compile_schema({"type": "object", "properties": {"spec": schema_of(Spec)}}, preserve_unknown_fields=False)


def test_what_is_empty_by_default_is_left_out_and_everything_else_is_written() -> None:
    assert to_wire(Spec("a", Color.RED)) == ALWAYS


def test_values_are_written_as_kubernetes_writes_them() -> None:
    east = datetime(2024, 2, 1, 13, 0, 0, 500_000, tzinfo=timezone(timedelta(hours=1)))
    spec = Spec("", Color.RED, cluster_ip="10.0.0.1", started=east, day=date(2024, 2, 1), secret=b"\x00\xff")
    spec.size, spec.other_limits, spec.maybe, spec.ports = Size.LARGE, Limits(), None, [Port("http", target="x")]
    assert to_wire(spec) == ALWAYS | {
        "title": "",
        "size": "large",
        "clusterIP": "10.0.0.1",
        "started": "2024-02-01T12:00:00Z",
        "day": "2024-02-01",
        "secret": "AP8=",
        "maybe": None,
        "otherLimits": {},
        "ports": [{"name": "http", "number": 80, "target": "x"}],
    }


def test_what_is_written_shares_nothing_with_the_instance() -> None:
    extra = {"a": [1]}
    written = to_wire({"extra": extra})
    extra["a"].append(2)
    assert written == {"extra": {"a": [1]}}


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        to_wire(NOON.replace(tzinfo=None))


def test_what_json_cannot_say_is_refused() -> None:
    with pytest.raises(TypeError, match="complex"):
        to_wire([1j])


def test_absent_fields_get_their_defaults_and_unknown_ones_are_ignored() -> None:
    assert from_wire(Spec, {"title": "a", "color": "red", "unknown": 1}) == Spec("a", Color.RED)


def test_a_null_is_absent_unless_the_field_is_nullable() -> None:
    assert from_wire(Spec, {"title": None, "color": "red", "replicas": None, "maybe": None}) == Spec(
        "", Color.RED, maybe=None
    )


@dataclass
class Incomplete:
    text: str
    number: int
    flag: bool
    either: int | str
    when: datetime
    raw: bytes
    color: Color
    size: Size
    names: list[str]
    labels: dict[str, str]
    port: Port
    maybe: str | None
    three: Annotated[int, Default(3)]


def test_missing_required_fields_are_zero() -> None:
    zero_time = datetime(1, 1, 1, tzinfo=UTC)
    read = from_wire(Incomplete, {})
    assert read == Incomplete("", 0, False, 0, zero_time, b"", read.color, Size.UNKNOWN, [], {}, Port(""), None, 3)
    assert read.color == "", "no member of the enum stands for nothing"


@pytest.mark.parametrize(
    ("annotation", "value", "read"),
    [
        (int, 3.0, 3),
        (float, 3, 3.0),
        (datetime, "2024-02-01T13:00:00.5+01:00", NOON),
        (datetime, "2024-02-01 12:00:00", NOON),
        (datetime, "yesterday", datetime(1, 1, 1, tzinfo=UTC)),
        (datetime, "0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        (date, "2024-02-01", date(2024, 2, 1)),
        (date, "yesterday", date.min),
        (bytes, "AP8=", b"\x00\xff"),
        (bytes, "é", b""),
        (bytes, "a", b""),
        (Color, "green", "green"),
        (list[str | None], ["a", None], ["a", None]),
        (list[Color], ["red"], [Color.RED]),
        (dict[str, Color], {"a": "red"}, {"a": Color.RED}),
        (Any, {"a": 1}, {"a": 1}),
    ],
    ids=str,
)
def test_whatever_passes_the_type_check_is_read(annotation: Any, value: Any, read: Any) -> None:
    found = from_wire(annotation, value)
    assert found == read
    assert type(found) is type(read)


@pytest.mark.parametrize("annotation", [int, datetime, date, bytes, Color, list[int], dict[str, int], Port])
@pytest.mark.parametrize("value", [True, "x" * 3, [[]], {"a": {}}], ids=str)
def test_json_of_another_type_is_read_without_an_error(annotation: Any, value: Any) -> None:
    from_wire(annotation, value)


def test_a_plain_dict_is_the_same_object_when_it_is_read() -> None:
    value = {"a": 1}
    assert from_wire({"type": "object"}, value) is value
    assert from_wire(Spec, {"extra": value}).extra is value


def test_a_typed_dict_is_read_by_key() -> None:
    class Options(TypedDict, total=False):
        since: datetime

    read = from_wire(Options, {"since": "2024-02-01T12:00:00Z", "other": 1}, names=globals())
    assert read == {"since": NOON, "other": 1}
    assert to_wire(read) == {"since": "2024-02-01T12:00:00Z", "other": 1}


def test_instances_of_classes_that_only_a_function_knows_are_read_and_written() -> None:
    @dataclass
    class Part:
        size: int = 0

    @dataclass
    class Whole:
        parts: list[Part]

    whole = from_wire(Whole, {"parts": [{"size": 1}]}, names=locals())
    assert whole == Whole([Part(1)])
    assert to_wire(whole) == {"parts": [{"size": 1}]}


def test_a_default_of_the_schema_is_not_shared_between_instances() -> None:
    @dataclass
    class Options:
        extra: Annotated[dict[str, Any], Default({"a": 1})]

    first, second = (from_wire(Options, {}) for _ in range(2))
    first.extra["b"] = 2
    assert second.extra == {"a": 1}
    assert to_wire(second) == {"extra": {"a": 1}}


texts, numbers = st.text(max_size=5), st.integers(-(2**63), 2**63 - 1)
moments = st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(microsecond=0))
ports = st.builds(Port, texts, numbers, numbers | texts)
limits = st.builds(Limits, numbers, st.floats(allow_nan=False))
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=5,
)
specs = st.builds(
    Spec,
    texts,
    st.sampled_from(Color),
    replicas=numbers,
    size=st.sampled_from(Size),
    cluster_ip=texts,
    paused=st.booleans(),
    enabled=st.booleans(),
    started=st.none() | moments,
    day=st.none() | st.dates(),
    secret=st.binary(max_size=5),
    note=st.none() | texts,
    maybe=st.none() | numbers,
    zero=numbers,
    ports=st.lists(ports, max_size=2),
    by_name=st.dictionaries(texts, ports, max_size=2),
    limits=limits,
    other_limits=st.none() | limits,
    strategy=st.builds(Strategy, numbers, st.sampled_from(["Rolling", "Recreate"])),
    extra=st.dictionaries(texts, json_values, max_size=2),
)


@settings(deadline=None)
@given(specs)
def test_what_is_written_is_read_as_it_was(spec: Spec) -> None:
    assert from_wire(Spec, to_wire(spec)) == spec


@settings(deadline=None)
@given(specs)
def test_what_is_written_is_valid_and_complete_by_its_schema(spec: Spec) -> None:
    obj = {"spec": to_wire(spec)}
    after = copy.deepcopy(obj)
    assert SCHEMA.prune(after) == []
    SCHEMA.default(after)
    assert after == obj
    assert [str(each) for each in SCHEMA.validate(obj)] == []


def test_the_schema_fills_in_what_the_class_would() -> None:
    obj: dict[str, Any] = {"spec": {"title": "a", "color": "red", "unknown": 1, "note": None}}
    SCHEMA.prune(obj)
    SCHEMA.default(obj)
    assert obj == {"spec": to_wire(Spec("a", Color.RED))}
