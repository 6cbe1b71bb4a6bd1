"""Cron schedules and time zones: which can be read, and what is said about those that cannot."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.cron import (
    FIELDS,
    Bounds,
    ScheduleError,
    TimeZoneError,
    load_location,
    parse_schedule,
    validate_time_zone,
)
from pilothouse.machinery.field import root


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "? ? ? ? ?",
        "*/5 9-17/2 1,15 JAN-mar MON,fri",
        "59 23 31 12 6",
        "5/15 * * * *",
        "0\t0  1 1\n*",
        ", * * * *",
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
        "@every 1h30m",
        "@every -1s",
        "TZ=UTC 0 0 * * *",
        "CRON_TZ=Europe/Berlin @daily",
        "*-5 * * * *",
    ],
)
def test_a_schedule_that_the_parser_knows(schedule: str) -> None:
    parse_schedule(schedule)


@pytest.mark.parametrize(
    ("schedule", "error"),
    [
        ("", "empty spec string"),
        (" ", "expected exactly 5 fields, found 0: []"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("0 0 * * * *", "expected exactly 5 fields, found 6: [0 0 * * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("9-5 * * * *", "beginning of range (9) beyond end of range (5): 9-5"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("-1 * * * *", 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
        ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
        (
            "99999999999999999999 * * * *",
            'failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": '
            "value out of range",
        ),
        ("* * * MON *", 'failed to parse int from MON: strconv.Atoi: parsing "MON": invalid syntax'),
        ("@often", "unrecognized descriptor: @often"),
        ("@Daily", "unrecognized descriptor: @Daily"),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
        ("TZ=Mars/Base 0 0 * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
        ("TZ=../etc 0 0 * * *", "provided bad location ../etc: time: invalid location name"),
        ("TZ=0", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
    ],
)
def test_a_schedule_that_the_parser_refuses(schedule: str, error: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        parse_schedule(schedule)
    assert str(refused.value) == error


@st.composite
def expressions(draw: st.DrawFn, bounds: Bounds) -> str:
    low = draw(st.integers(bounds.low, bounds.high))
    high = draw(st.integers(low, bounds.high))
    step = draw(st.sampled_from(["", "/1", "/7", "/100"]))
    return draw(st.sampled_from(["*", "?", str(low), f"{low}-{high}"])) + step


@settings(max_examples=60)
@given(st.tuples(*(st.lists(expressions(bounds), min_size=1, max_size=3) for bounds in FIELDS)))
def test_every_list_of_ranges_inside_the_bounds_is_a_schedule(fields: tuple[list[str], ...]) -> None:
    parse_schedule(" ".join(",".join(ranges) for ranges in fields))


@settings(max_examples=60)
@given(st.integers(0, len(FIELDS) - 1), st.integers(1, 1000))
def test_no_value_above_the_bounds_is_a_schedule(field: int, excess: int) -> None:
    fields = ["*"] * len(FIELDS)
    fields[field] = str(FIELDS[field].high + excess)
    with pytest.raises(ScheduleError, match="above maximum"):
        parse_schedule(" ".join(fields))


@pytest.mark.parametrize(
    ("name", "errors"),
    [
        (None, []),
        ("UTC", []),
        ("Etc/GMT+5", []),
        ("America/Argentina/Buenos_Aires", []),
        ("", ['z: Invalid value: "": timeZone must be nil or non-empty string']),
        ("Mars/Base", ['z: Invalid value: "Mars/Base": unknown time zone Mars/Base']),
        ("../UTC", ['z: Invalid value: "../UTC": unknown time zone ../UTC']),
        ("Europe//Berlin", ['z: Invalid value: "Europe//Berlin": unknown time zone Europe//Berlin']),
        ("-UTC", ['z: Invalid value: "-UTC": unknown time zone -UTC']),
        ("abcdefghijklmno", ['z: Invalid value: "abcdefghijklmno": unknown time zone abcdefghijklmno']),
        ("Europe", ['z: Invalid value: "Europe": unknown time zone Europe']),
        (
            "Local",
            [
                'z: Invalid value: "Local": '
                "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
            ],
        ),
    ],
)
def test_time_zones_are_those_of_the_database(name: str | None, errors: list[str]) -> None:
    assert list(map(str, validate_time_zone(name, root("z")))) == errors


def test_a_location_outside_the_database_is_none() -> None:
    with pytest.raises(TimeZoneError, match="invalid location name"):
        load_location("/etc/passwd")
