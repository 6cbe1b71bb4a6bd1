"""Flags are read as pflag reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.flags import (
    BOOL,
    BOOL_MAP,
    CONFIGURATION_MAP,
    DURATION,
    FLOAT,
    INT,
    IP,
    STRING,
    STRING_ARRAY,
    STRINGS,
    Flag,
    FlagError,
    format_section,
    parse,
)

FLAGS = [
    Flag("port", INT, 6443, "A port."),
    Flag("name", STRING, "", "A name."),
    Flag("on", BOOL, False, "A switch."),
    Flag("list", STRINGS, (), "A list."),
    Flag("file", STRING_ARRAY, (), "Files."),
    Flag("gates", BOOL_MAP, {}, "Gates."),
    Flag("config", CONFIGURATION_MAP, {}, "Settings."),
    Flag("wait", DURATION, 60.0, "How long."),
    Flag("chance", FLOAT, 0.0, "How likely."),
    Flag("address", IP, "", "Where."),
    Flag("v", INT, 0, "How much.", shorthand="v"),
]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("--port 1 --name=x", {"port": 1, "name": "x"}),
        ("--port=0x10", {"port": 16}),
        ("--port=010", {"port": 8}),
        ("--port -1", {"port": -1}),
        ("--name=a=b", {"name": "a=b"}),
        ("--name=", {"name": ""}),
        ("--on", {"on": True}),
        ("--on=false", {"on": False}),
        ("--on=T", {"on": True}),
        ("--port 1 --port 2", {"port": 2}),
        ("--list a,b --list=c", {"list": ("a", "b", "c")}),
        ('--list "a,b",c', {"list": ("a,b", "c")}),
        ("--list=", {"list": ()}),
        ("--file a,b --file c", {"file": ("a,b", "c")}),
        ("--gates A=true,B=false --gates B=true", {"gates": {"A": True, "B": True}}),
        ("--config api/all=true,v1", {"config": {"api/all": "true", "v1": ""}}),
        ("--wait 1m30s", {"wait": 90.0}),
        ("--chance .01", {"chance": 0.01}),
        ("--address ::1", {"address": "::1"}),
        ("-v 2", {"v": 2}),
        ("-v2", {"v": 2}),
        ("-v=2", {"v": 2}),
        ("--v=2", {"v": 2}),
        ("", {}),
    ],
)
def test_a_command_line_gives_these_values(line: str, values: dict[str, Any]) -> None:
    assert parse(FLAGS, line.split()).values == values


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--nope", "unknown flag: --nope"),
        ("--nope=1", "unknown flag: --nope"),
        ("--=1", "bad flag syntax: --=1"),
        ("-x", "unknown shorthand flag: 'x' in -x"),
        ("--port", "flag needs an argument: --port"),
        ("-v", "flag needs an argument: --v"),
        (
            "--port=http",
            'invalid argument "http" for "--port" flag: strconv.ParseInt: parsing "http": invalid syntax',
        ),
        ("-v=x", 'invalid argument "x" for "-v, --v" flag: strconv.ParseInt: parsing "x": invalid syntax'),
        ("--on=2", 'invalid argument "2" for "--on" flag: strconv.ParseBool: parsing "2": invalid syntax'),
        ("--wait=10", 'invalid argument "10" for "--wait" flag: time: missing unit in duration "10"'),
        ("--gates=A", 'invalid argument "A" for "--gates" flag: missing bool value for A'),
        ("--address=x", 'invalid argument "x" for "--address" flag: failed to parse IP: "x"'),
        ("--chance=x", 'invalid argument "x" for "--chance" flag: strconv.ParseFloat: parsing "x": invalid syntax'),
    ],
)
def test_a_bad_command_line_is_refused_with_pflags_words(line: str, message: str) -> None:
    with pytest.raises(FlagError) as refusal:
        parse(FLAGS, line.split())
    assert str(refusal.value) == message


def test_a_boolean_does_not_take_the_next_argument() -> None:
    parsed = parse(FLAGS, ["--on", "false"])
    assert (parsed.values, parsed.positionals) == ({"on": True}, ["false"])


def test_underscores_in_names_are_dashes() -> None:
    flags = [Flag("secure-port", INT, 6443, "")]
    assert parse(flags, ["--secure_port=1"]).values == {"secure-port": 1}


def test_everything_after_two_dashes_is_positional() -> None:
    assert parse(FLAGS, ["--on", "--", "--port", "-"]).positionals == ["--port", "-"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("1h", 3600), ("1h2m3s", 3723), ("1.5s", 1.5), ("-2m", -120), ("250ms", 0.25), ("+1s", 1), (".5s", 0.5)],
)
def test_durations_are_gos(text: str, seconds: float) -> None:
    assert DURATION.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("x", 'time: invalid duration "x"'),
        ("1", 'time: missing unit in duration "1"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1s2", 'time: missing unit in duration "1s2"'),
        (".s", 'time: invalid duration ".s"'),
    ],
)
def test_a_bad_duration_is_refused_with_gos_words(text: str, message: str) -> None:
    with pytest.raises(ValueError) as refusal:
        DURATION.parse(text)
    assert str(refusal.value) == message


def test_durations_print_as_go_prints_them() -> None:
    printed = [DURATION.show(seconds) for seconds in (0, 1, 1.5, 60, 90, 3600, 3661, 0.25, -60)]
    assert printed == ["0s", "1s", "1.5s", "1m0s", "1m30s", "1h0m0s", "1h1m1s", "250ms", "-1m0s"]


@settings(max_examples=50)
@given(st.integers(-(10**7), 10**7))
def test_a_printed_duration_reads_back(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert DURATION.parse(DURATION.show(seconds)) == pytest.approx(seconds, rel=1e-5, abs=1e-9)


def test_the_help_shows_types_and_defaults_sorted_by_name() -> None:
    flags = [Flag("wait", DURATION, 60.0, "How long."), Flag("on", BOOL, True, "A switch."), FLAGS[-1]]
    assert format_section("misc", flags, columns=80) == (
        "Misc flags:\n\n"
        "      --on\n                A switch. (default true)\n"
        "  -v, --v int\n                How much.\n"
        "      --wait duration\n                How long. (default 1m0s)\n"
    )
