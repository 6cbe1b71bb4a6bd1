"""Go's times and durations, as text and as numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.protobuf.times import (
    ZERO_TIME,
    format_duration,
    format_micros,
    format_seconds,
    parse_duration,
    parse_time,
    unix_seconds,
)


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (3600 * 10**9, "1h0m0s"),
        (90 * 10**9, "1m30s"),
        (4 * 60 * 10**9 + 5_001_000_000, "4m5.001s"),
        (5 * 3600 * 10**9 + 6 * 60 * 10**9 + 7_001_000_000, "5h6m7.001s"),
        (-1, "-1ns"),
        ((1 << 63) - 1, "2562047h47m16.854775807s"),
    ],
)
def test_durations_are_printed_as_go_prints_them(nanos: int, text: str) -> None:
    assert format_duration(nanos) == text
    assert parse_duration(text) == nanos


@pytest.mark.parametrize(
    ("text", "nanos"),
    [("1.5h", 5400 * 10**9), (".5s", 500_000_000), ("1m1m", 120 * 10**9), ("+3us", 3000), ("0", 0), ("-0", 0)],
)
def test_durations_that_go_would_not_print_are_read_too(text: str, nanos: int) -> None:
    assert parse_duration(text) == nanos


@pytest.mark.parametrize("text", ["", "1", "s", "1x", "1h ", "--1s", ".s"])
def test_other_text_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration(text)


@settings(deadline=None)
@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_every_duration_survives_its_text(nanos: int) -> None:
    assert parse_duration(format_duration(nanos)) == nanos


@settings(deadline=None)
@given(st.integers(ZERO_TIME, 253402300799), st.integers(0, 999_999))
def test_every_time_survives_its_text(seconds: int, micros: int) -> None:
    assert unix_seconds(parse_time(format_seconds(seconds))) == seconds
    moment = parse_time(format_micros(seconds, micros))
    assert (unix_seconds(moment), moment.microsecond) == (seconds, micros)


def test_times_are_utc_and_padded() -> None:
    assert format_seconds(ZERO_TIME) == "0001-01-01T00:00:00Z"
    assert format_micros(0, 6) == "1970-01-01T00:00:00.000006Z"
    assert unix_seconds(parse_time("1970-01-01T02:00:00+02:00")) == 0
    assert unix_seconds(parse_time("1969-12-31T23:59:59.5Z")) == -1


def test_a_time_needs_a_zone() -> None:
    with pytest.raises(ValueError, match="no zone"):
        parse_time("2024-01-01T00:00:00")
