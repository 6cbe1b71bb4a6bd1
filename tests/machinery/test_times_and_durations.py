"""Times and spans read and print as Go and kubectl users know them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery import times
from pilothouse.machinery.durations import (
    DurationError,
    age,
    format_duration,
    human_duration,
    parse_duration,
    seconds,
    short_human_duration,
    until,
)
from pilothouse.machinery.schema.gotime import TimeError

NOON = datetime(2024, 2, 1, 12, 0, 0, 987654, tzinfo=UTC)


def test_a_time_prints_in_whole_seconds_of_utc() -> None:
    assert times.now(lambda: NOON) == "2024-02-01T12:00:00Z"
    assert times.now_micro(lambda: NOON) == "2024-02-01T12:00:00.987654Z"
    east = NOON.astimezone(timezone(timedelta(hours=2)))
    assert times.format_time(east) == "2024-02-01T12:00:00Z"
    assert times.format_micro_time(NOON.replace(microsecond=0)) == "2024-02-01T12:00:00.000000Z"


def test_a_printed_time_reads_back() -> None:
    assert times.parse_time("2024-02-01T14:00:00+02:00") == NOON.replace(microsecond=0)
    assert times.parse_micro_time("2024-02-01T12:00:00.987654Z") == NOON
    assert times.parse_time("0001-01-01T00:00:00Z") is None
    with pytest.raises(TimeError, match='parsing time "noon"'):
        times.parse_time("noon")
    with pytest.raises(TimeError):
        times.parse_time("0000-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("span", "text", "short"),
    [
        (timedelta(seconds=-2), "<invalid>", "<invalid>"),
        (timedelta(seconds=-1.5), "0s", "0s"),
        (timedelta(seconds=0.9), "0s", "0s"),
        (timedelta(seconds=119), "119s", "1m"),
        (timedelta(minutes=2), "2m", "2m"),
        (timedelta(minutes=2, seconds=1), "2m1s", "2m"),
        (timedelta(minutes=9, seconds=59), "9m59s", "9m"),
        (timedelta(minutes=10, seconds=1), "10m", "10m"),
        (timedelta(minutes=179), "179m", "2h"),
        (timedelta(hours=3), "3h", "3h"),
        (timedelta(hours=7, minutes=59), "7h59m", "7h"),
        (timedelta(hours=8, minutes=1), "8h", "8h"),
        (timedelta(hours=47), "47h", "1d"),
        (timedelta(days=2), "2d", "2d"),
        (timedelta(days=2, hours=3), "2d3h", "2d"),
        (timedelta(days=8, hours=3), "8d", "8d"),
        (timedelta(days=729), "729d", "1y"),
        (timedelta(days=730), "2y", "2y"),
        (timedelta(days=731), "2y1d", "2y"),
        (timedelta(days=365 * 8 + 1), "8y", "8y"),
    ],
)
def test_a_span_is_short_for_people(span: timedelta, text: str, short: str) -> None:
    assert human_duration(span) == text
    assert short_human_duration(span) == short


def test_an_age_is_counted_from_a_stored_time() -> None:
    assert age("2024-02-01T11:55:00Z", lambda: NOON) == "5m"
    assert age(None, lambda: NOON) == "<unknown>"
    assert age("2024-02-01T13:00:00Z", lambda: NOON) == "<invalid>"
    assert until("2024-02-01T13:00:00Z", lambda: NOON) == "59m"
    assert until("0001-01-01T00:00:00Z", lambda: NOON) == "<unknown>"


@pytest.mark.parametrize(
    ("text", "nanoseconds", "printed"),
    [
        ("0", 0, "0s"),
        ("1h15m30.5s", 4_530_500_000_000, "1h15m30.5s"),
        ("-1.5h", -5_400_000_000_000, "-1h30m0s"),
        ("+5m", 300_000_000_000, "5m0s"),
        ("1500ms", 1_500_000_000, "1.5s"),
        ("1500us", 1_500_000, "1.5ms"),
        ("1500ns", 1500, "1.5µs"),
        ("1ns", 1, "1ns"),
        (".5s", 500_000_000, "500ms"),
        ("24h", 86_400_000_000_000, "24h0m0s"),
    ],
)
def test_a_go_duration_reads_and_prints(text: str, nanoseconds: int, printed: str) -> None:
    assert parse_duration(text) == nanoseconds
    assert format_duration(nanoseconds) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("5", 'time: missing unit in duration "5"'),
        ("5d", 'time: unknown unit "d" in duration "5d"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
        ("1h x", 'time: unknown unit "h x" in duration "1h x"'),
    ],
)
def test_a_text_that_is_no_duration_is_refused_with_gos_words(text: str, message: str) -> None:
    with pytest.raises(DurationError) as refusal:
        parse_duration(text)
    assert str(refusal.value) == message


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_duration_reads_back_as_it_was_printed(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds


@pytest.mark.parametrize(
    ("count", "span"),
    [
        (30, timedelta(seconds=30)),
        (-1, timedelta(seconds=-1)),
        (9223372036, timedelta(seconds=9223372036)),
        (9223372037, timedelta(microseconds=-9223372036709552)),
        (2**63 - 1, timedelta(seconds=-1)),
        (-(2**63), timedelta()),
    ],
)
def test_seconds_that_a_go_duration_cannot_hold_start_over(count: int, span: timedelta) -> None:
    assert seconds(count) == span
