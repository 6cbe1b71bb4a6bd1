"""JSON values as YAML in the form that sigs.k8s.io/yaml prints: keys in natural order, sequences not indented,
strings quoted only where they would be read as something else, literal blocks for strings of several lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cmp_to_key
from io import StringIO
from typing import Any

from pilothouse.machinery.codec.yaml_gofmt import go_float
from pilothouse.machinery.codec.yaml_resolve import Tag, resolve

_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_DOCUMENT_END = "\n...\n"


def emit_yaml(value: Any) -> bytes:
    import yaml  # imported late, because few servers ever write YAML

    # One after the other: all events of a large object would take more than a hundred times its size.
    stream = StringIO()
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)(stream, allow_unicode=True)
    try:
        dumper.emit(yaml.StreamStartEvent())
        dumper.emit(yaml.DocumentStartEvent(explicit=False))
        _emit(value, dumper.emit, yaml)
        dumper.emit(yaml.DocumentEndEvent(explicit=False))
        dumper.emit(yaml.StreamEndEvent())
    finally:
        dumper.dispose()
    text = stream.getvalue()
    # libyaml closes a text that ends in a block with trailing line breaks; its Go port does not.
    if text.endswith(_DOCUMENT_END):
        text = text[: 1 - len(_DOCUMENT_END)]
    return text.encode()


def _emit(value: Any, emit: Callable[[Any], None], yaml: Any) -> None:
    if isinstance(value, dict):
        emit(yaml.MappingStartEvent(None, None, implicit=True, flow_style=False))
        for key in sorted(value, key=_NATURAL):
            emit(_string(key, yaml))
            _emit(value[key], emit, yaml)
        emit(yaml.MappingEndEvent())
    elif isinstance(value, list):
        emit(yaml.SequenceStartEvent(None, None, implicit=True, flow_style=False))
        for item in value:
            _emit(item, emit, yaml)
        emit(yaml.SequenceEndEvent())
    elif isinstance(value, str):
        emit(_string(value, yaml))
    else:
        emit(yaml.ScalarEvent(None, None, (True, True), _plain(value)))


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return go_float(value) if isinstance(value, float) else str(value)


def _string(text: str, yaml: Any) -> Any:
    if "\n" in text:
        style = "|"
    else:
        is_string = resolve(text)[0] is Tag.STRING and not _BASE_60.fullmatch(text)
        style = "" if is_string else '"'
    return yaml.ScalarEvent(None, None, (True, True), text, style=style or None)


def _compare(left: str, right: str) -> int:
    """yaml.v2's order: letters after everything else, runs of digits by their number."""
    for at, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return -1 if _is_less(left, right, at) else 1
    return len(left) - len(right)


def _is_less(left: str, right: str, at: int) -> bool:
    """Decides at the first place where the two differ."""
    a, b = left[at], right[at]
    if a.isalpha() or b.isalpha():
        return a < b if a.isalpha() and b.isalpha() else b.isalpha()
    # A zero that differs from a digit inside a longer number counts as that number's digit, not as a leading zero.
    lead = 1 if "0" in (a, b) and left[:at].rstrip("0")[-1:].isdecimal() else 0
    left_number, left_end = _run(left, at, lead)
    right_number, right_end = _run(right, at, lead)
    return (left_number, left_end, a) < (right_number, right_end, b)


def _run(text: str, at: int, lead: int) -> tuple[int, int]:
    number, end = lead, at
    while end < len(text) and text[end].isdecimal():
        number, end = number * 10 + int(text[end]), end + 1
    return number, end


_NATURAL = cmp_to_key(_compare)
