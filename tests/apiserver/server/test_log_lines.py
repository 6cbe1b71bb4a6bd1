"""The log: klog's lines, or JSON."""

from __future__ import annotations

import io
import json
import logging
import os
import re
from collections.abc import Iterator

import pytest

from pilothouse.apiserver import logs
from pilothouse.apiserver.logs import v

log = logging.getLogger("pilothouse.test")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_line_looks_like_klogs(stream: io.StringIO) -> None:
    logs.configure(stream=stream)
    log.warning("The %s is full", "disk")
    line = rf"W\d{{4}} \d\d:\d\d:\d\d\.\d{{6}} +{os.getpid()} test_log_lines.py:\d+\] The disk is full\n"
    assert re.fullmatch(line, stream.getvalue())


@pytest.mark.parametrize(("level", "letter"), [(logging.INFO, "I"), (logging.ERROR, "E"), (logging.CRITICAL, "F")])
def test_the_first_letter_is_the_severity(stream: io.StringIO, level: int, letter: str) -> None:
    logs.configure(stream=stream)
    log.log(level, "text")
    assert stream.getvalue()[0] == letter


@pytest.mark.parametrize(
    ("verbosity", "written"), [(0, [0]), (2, [0, 1, 2]), (10, [0, 1, 2, 4, 10]), (99, [0, 1, 2, 4, 10])]
)
def test_verbosity_decides_what_is_written(stream: io.StringIO, verbosity: int, written: list[int]) -> None:
    logs.configure(verbosity=verbosity, stream=stream)
    for level in (0, 1, 2, 4, 10):
        log.log(v(level), "V%d", level)
    assert [int(line.rpartition("V")[2]) for line in stream.getvalue().splitlines()] == written


PAIRS = {"verb": "GET", "URI": '/a?b="', "resp": 200}


def test_keys_and_values_follow_the_message(stream: io.StringIO) -> None:
    logs.configure(stream=stream)
    logs.log_pairs(log, v(0), "HTTP", PAIRS)
    line = r'.* test_log_lines\.py:\d+\] "HTTP" verb="GET" URI="/a\?b=\\"" resp=200\n'
    assert re.fullmatch(line, stream.getvalue())


def test_keys_and_values_are_fields_in_json(stream: io.StringIO) -> None:
    logs.configure(format="json", stream=stream)
    logs.log_pairs(log, v(0), "HTTP", PAIRS)
    assert json.loads(stream.getvalue()).items() >= {"msg": "HTTP", "v": 0, **PAIRS}.items()


def test_json_lines_have_upstreams_keys(stream: io.StringIO) -> None:
    logs.configure(verbosity=3, format="json", stream=stream)
    log.log(v(3), "detail")
    try:
        raise OSError("no space")
    except OSError:
        log.exception("write failed")
    detail, failure = map(json.loads, stream.getvalue().splitlines())
    assert (detail["msg"], detail["v"]) == ("detail", 3)
    assert detail["caller"].startswith("test_log_lines.py:")
    assert failure["level"] == "error"
    assert "OSError: no space" in failure["err"]
