"""The compiler's names of types and its complaints, in the words of cel-go."""

from __future__ import annotations

import re

from pilothouse.machinery.cel.messages import unmangled

DYN = "dyn"

_GO_NAMES = {
    "NULL": "null_type",
    "TIMESTAMP": "google.protobuf.Timestamp",
    "DURATION": "google.protobuf.Duration",
}
_NATIVE_NAME = re.compile(
    r"(?<![\w.])(?:BOOL|BYTES|DOUBLE|DURATION|DYN|ERROR|INT|LIST|MAP|NULL|STRING|TIMESTAMP|TYPE|UINT)\b"
)
_STATUS = re.compile(r"^[A-Z_]+: |( \[[A-Z_]+\])$")
_COMPLAINT = re.compile(r"^(?=ERROR: )", re.MULTILINE)
_PLACE = re.compile(r"ERROR: <input>:(\d+):(\d+): ")
_IN_STRUCT = re.compile(r"(undefined field '[^']*') not found in struct '[^']*'")
_UNDECLARED_PATH = re.compile(
    r"<input>:(?P<line>\d+):(?P<column>\d+): undeclared reference to '(?P<name>\w+)\.[\w.]+' \(in container ''\)\n"
    r" \| (?P<source>.*)\n \| \.*\^"
)
_REWORDED = {
    re.compile(r"expression of type ('[^']*') cannot be the operand of a select operation"): (
        r"type \1 does not support field selection"
    ),
    re.compile(r"cannot be the range of a comprehension"): "cannot be range of a comprehension",
    re.compile(r"google\.protobuf\.Duration"): "duration",
    re.compile(r"google\.protobuf\.Timestamp"): "timestamp",
    re.compile(r"^(ERROR: <input>:1:)1(: Syntax error: mismatched input '<EOF>')"): r"\g<1>0\2",
}
_NO_OVERLOAD = re.compile(
    r"(?P<where>ERROR: <input>:\d+:(?P<column>\d+)): found no matching overload for '(?P<name>[^']+)' "
    r"applied to '\((?P<target>[^',()]+(?:\([^']*?\))?)(?:, )?(?P<arguments>[^']*)\)'\n \| (?P<source>.*)"
)


def go_type(native: str) -> str:
    """LIST<INT> → list(int)"""
    text = _NATIVE_NAME.sub(lambda found: _GO_NAMES.get(found[0], found[0].lower()), native)
    return unmangled(text.replace("<", "(").replace(">", ")"))


def declarable_type(native: str) -> str:
    """LIST<INT> → list<int>. Optionals and types of types cannot be declared: they may be anything."""
    if "optional_type" in native or "TYPE<" in native:
        return DYN
    return _NATIVE_NAME.sub(lambda found: "null_type" if found[0] == "NULL" else found[0].lower(), native)


def in_words_of_go(message: str) -> str:
    complaints = _COMPLAINT.split(_STATUS.sub("", message))
    # What follows from another complaint is none of its own.
    first_causes = [each.rstrip("\n") for each in complaints if "*error*" not in each] or complaints
    first_causes.sort(key=_place)
    text = _IN_STRUCT.sub(r"\1", "\n".join(map(_reworded, filter(None, first_causes))).rstrip("\n"))
    return unmangled(_UNDECLARED_PATH.sub(_undeclared_root, text))


def _place(complaint: str) -> tuple[int, ...]:
    """The line and column that a complaint is about."""
    found = _PLACE.match(complaint)
    return (int(found[1]), int(found[2])) if found else ()


def _reworded(complaint: str) -> str:
    """The complaint in cel-go's words; what it shows of the expression stays as it is."""
    first, newline, shown = complaint.partition("\n")
    for pattern, replacement in _REWORDED.items():
        first = pattern.sub(replacement, first)
    return _NO_OVERLOAD.sub(_on_receiver, first + newline + shown)


def _on_receiver(found: re.Match[str]) -> str:
    """Return the complaint about `a.f(b)` as cel-go has it: applied to 'a.(b)'."""
    name, called = found["name"], found["source"][: int(found["column"]) - 1]
    if not called.endswith(f".{name}"):
        return found[0]
    signature = f"{found['target']}.({found['arguments']})"
    why = f"found no matching overload for '{name}' applied to '{signature}'"
    return f"{found['where']}: {why}\n | {found['source']}"


def _undeclared_root(found: re.Match[str]) -> str:
    """Return the message about an unknown `a.b.c` as cel-go has it: that `a` is not known, pointing at it."""
    name, source = found["name"], found["source"]
    start = source.rfind(name, 0, int(found["column"]) - 1)
    where = f"<input>:{found['line']}:{start + 1}"
    return f"{where}: undeclared reference to '{name}' (in container '')\n | {source}\n | {'.' * start}^"
