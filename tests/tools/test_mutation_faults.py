"""The faults of the mutation run: each is one small change in the text, and nothing that only people read changes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.mutation.faults import Fault, faults_in
from tools.mutation.trial import in_files, within

SOURCE = '''\
"""A module."""
LIMIT = 3

def f(ä, b):
    """1 == 1"""
    {}

class C:
    def __repr__(self):
        return "x"
'''


def faults(tmp_path: Path, statement: str) -> tuple[bytes, list[Fault]]:
    source = SOURCE.replace("{}", statement).encode()
    (tmp_path / "m.py").write_bytes(source)
    return source, list(faults_in(Path("m.py"), tmp_path))


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("x = ä == b", ["x = ä != b"]),
        ("x = ä < b", ["x = ä <= b"]),
        ("x = ä not in b", ["x = ä in b"]),
        ("x = ä and b", ["x = ((ä) or (b))"]),
        ("x = not ä", ["x = (ä)"]),
        ("x = 3", ["x = 4"]),
        ("x = True", ["x = False"]),
        ("if ä: return", ["if (not (ä)): return"]),
        ("x = [c for c in b if c]", ["x = [c for c in b if (not (c))]"]),
        ("ä.x = b", ["pass"]),
        ("ä.x(b)", ["pass"]),
        ("ä += b", ["pass"]),
        ("raise ä", ["pass"]),
        ("return b", ["return None"]),
        ("return None", []),
        ("logger.info(1)", []),
        ("x: list[1] = b", []),
        ("x = b if ä else\\\n     3", ["x = b if (not (ä)) else\\\n     3", "x = b if ä else\\\n     4"]),
    ],
)
def test_each_fault_changes_one_thing(tmp_path: Path, statement: str, changed: list[str]) -> None:
    source, found = faults(tmp_path, statement)
    applied = [fault.applied_to(source).decode() for fault in found]
    assert applied == [source.decode().replace(statement, each) for each in changed]
    for text in applied:
        ast.parse(text)


def test_a_fault_knows_its_line_and_that_of_its_statement(tmp_path: Path) -> None:
    _, found = faults(tmp_path, "x = call(ä,\n      3)")
    assert [(fault.line, fault.statement) for fault in found] == [(7, 6)]


def test_the_fastest_tests_are_tried_within_the_time_and_file_by_file() -> None:
    seconds = {"a::1": 1.0, "b::1": 2.0, "a::2": 3.0, "c::1": 30.0}
    chosen = within(10.0, list(seconds), seconds)
    assert chosen == ["a::1", "b::1", "a::2"]
    assert in_files(chosen, seconds) == ["b::1", "a::1", "a::2"]
    assert within(10.0, ["c::1"], seconds) == ["c::1"], "one is always tried"
