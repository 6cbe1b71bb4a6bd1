"""Times as Go's time.Parse reads them, with its words for those it does not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.schema.gotime import TimeError, canonical_micro_time, canonical_time

ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES)


@given(MOMENTS)
def test_every_time_is_printed_in_utc(moment: datetime) -> None:
    in_utc = moment.astimezone(UTC)
    year = f"{in_utc.year:04d}"
    assert canonical_time(moment.isoformat()) == year + in_utc.strftime("-%m-%dT%H:%M:%SZ")
    text = moment.isoformat(timespec="microseconds")
    assert canonical_micro_time(text) == year + in_utc.strftime("-%m-%dT%H:%M:%S.%fZ")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
        ("2024-01-01T1:00:00Z", "2024-01-01T01:00:00Z"),
        ("2024-01-01T00:00:00,999999999Z", "2024-01-01T00:00:00Z"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59-01:00", "10000-01-01T00:59:59Z"),
        ("0001-01-01T00:00:00Z", None),
        ("0001-01-01T01:00:00+01:00", None),
    ],
)
def test_times_at_the_edges(text: str, printed: str | None) -> None:
    assert canonical_time(text) == printed


def cannot(text: str, rest: str, part: str) -> str:
    return f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{rest}" as "{part}"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", cannot("", "", "2006")),
        ("soon", cannot("soon", "soon", "2006")),
        ('a\n"\\é', cannot(r"a\x0a\"\\\xc3\xa9", r"a\x0a\"\\\xc3\xa9", "2006")),
        ("2024", cannot("2024", "", "-")),
        ("2024-1-01T00:00:00Z", cannot("2024-1-01T00:00:00Z", "1-01T00:00:00Z", "01")),
        ("2024-01-01", cannot("2024-01-01", "", "T")),
        ("2024-01-01 00:00:00Z", cannot("2024-01-01 00:00:00Z", " 00:00:00Z", "T")),
        ("2024-01-01T00:0:00Z", cannot("2024-01-01T00:0:00Z", "0:00Z", "04")),
        ("2024-01-01T00:00:00", cannot("2024-01-01T00:00:00", "", "Z07:00")),
        ("2024-01-01T00:00:00+0100", cannot("2024-01-01T00:00:00+0100", "+0100", "Z07:00")),
        ("2024-13-01T00:00:00Z", 'parsing time "2024-13-01T00:00:00Z": month out of range'),
        ("2023-02-29T00:00:00Z", 'parsing time "2023-02-29T00:00:00Z": day out of range'),
        ("2024-01-01T24:00:00Z", 'parsing time "2024-01-01T24:00:00Z": hour out of range'),
        ("2024-01-01T00:60:00Z", 'parsing time "2024-01-01T00:60:00Z": minute out of range'),
        ("2024-01-01T00:00:60Z", 'parsing time "2024-01-01T00:00:60Z": second out of range'),
        ("2024-01-01T00:00:00+25:00", 'parsing time "2024-01-01T00:00:00+25:00": time zone offset hour out of range'),
        ("2024-01-01T00:00:00Zx", 'parsing time "2024-01-01T00:00:00Zx": extra text: "x"'),
    ],
)
def test_bad_times_are_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(TimeError) as caught:
        canonical_time(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("fraction", ["", ".5", ".12345"])
def test_a_micro_time_wants_six_digits(fraction: str) -> None:
    text = f"2024-01-01T00:00:00{fraction}Z"
    with pytest.raises(TimeError) as caught:
        canonical_micro_time(text)
    layout = "2006-01-02T15:04:05.000000Z07:00"
    assert str(caught.value) == f'parsing time "{text}" as "{layout}": cannot parse "{fraction}Z" as ".000000"'
