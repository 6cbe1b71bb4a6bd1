"""YAML output in the format of sigs.k8s.io/yaml: keys in natural order, sequences not indented, quotes only around
strings that would be read as another type, literal blocks for multi-line strings."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection
from functools import cmp_to_key
from typing import Any

from pilothouse.machinery.codec.yaml_scalars import Tag, go_float, resolve

_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_DOCUMENT_END = "\n...\n"
_BOTH_IMPLICIT = (True, True)
_NUMERIC = frozenset("+-0123456789")
_DIGITS = re.compile("[0-9]+")
_MOST_DIGITS = 20
_BEFORE_LETTERS = {ord(char): chr(at + 1) for at, char in enumerate("[\\]^_`{|}~")}
_FEW = 16


def emit_yaml(value: Any) -> bytes:
    import yaml  # imported late, because few servers write YAML

    stream = io.StringIO()
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)(stream, allow_unicode=True)
    try:
        _Emitter(yaml, dumper.emit).document(value)
    finally:
        dumper.dispose()
    text = stream.getvalue()
    # libyaml terminates a text that ends in a block with trailing line breaks; its Go port does not.
    if text.endswith(_DOCUMENT_END):
        text = text[: 1 - len(_DOCUMENT_END)]
    return text.encode()


class _Emitter:
    """Feeds events to libyaml. End events carry no data and are shared."""

    def __init__(self, yaml: Any, emit: Callable[[Any], None]) -> None:
        self._yaml = yaml
        self._emit = emit
        self._scalar = yaml.ScalarEvent
        self._mapping = yaml.MappingStartEvent(None, None, implicit=True, flow_style=False)
        self._mapping_end = yaml.MappingEndEvent()
        self._sequence = yaml.SequenceStartEvent(None, None, implicit=True, flow_style=False)
        self._sequence_end = yaml.SequenceEndEvent()

    def document(self, value: Any) -> None:
        yaml = self._yaml
        self._emit(yaml.StreamStartEvent())
        self._emit(yaml.DocumentStartEvent(explicit=False))
        self._value(value)
        self._emit(yaml.DocumentEndEvent(explicit=False))
        self._emit(yaml.StreamEndEvent())

    def _value(self, value: Any) -> None:
        if isinstance(value, str):
            self._string(value)
        elif isinstance(value, dict):
            self._emit(self._mapping)
            for key in in_natural_order(value):
                self._string(key)
                self._value(value[key])
            self._emit(self._mapping_end)
        elif isinstance(value, list):
            self._emit(self._sequence)
            for item in value:
                self._value(item)
            self._emit(self._sequence_end)
        else:
            self._emit(self._scalar(None, None, _BOTH_IMPLICIT, _plain(value)))

    def _string(self, text: str) -> None:
        style = "|" if "\n" in text else None if _is_plain(text) else '"'
        self._emit(self._scalar(None, None, _BOTH_IMPLICIT, text, style=style))


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return go_float(value) if isinstance(value, float) else str(value)


def _is_plain(text: str) -> bool:
    """Return whether the unquoted text is read back as a string."""
    return resolve(text)[0] is Tag.STRING and not (text[0] in _NUMERIC and _BASE_60.fullmatch(text))


def in_natural_order(keys: Collection[str]) -> list[str]:
    """Return the keys in yaml.v2's order. Many keys are presorted approximately: a comparison costs much more than a
    sort key."""
    nearly = sorted(keys, key=_roughly) if len(keys) > _FEW else keys
    return sorted(nearly, key=_NATURAL)


def _roughly(text: str) -> str:
    padded = _DIGITS.sub(_pad, text)
    return padded if padded.isalnum() else padded.translate(_BEFORE_LETTERS)


def _pad(digits: re.Match[str]) -> str:
    return digits[0].rjust(_MOST_DIGITS, "0")


def _compare(left: str, right: str) -> int:
    """Compare in yaml.v2's order: letters sort last, runs of digits sort by value."""
    for at, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return -1 if _is_less(left, right, at) else 1
    return len(left) - len(right)


def _is_less(left: str, right: str, at: int) -> bool:
    """Compare at the first difference."""
    a, b = left[at], right[at]
    if a.isalpha() or b.isalpha():
        return a < b if a.isalpha() and b.isalpha() else b.isalpha()
    # A zero inside a longer number is a digit of that number, not a leading zero.
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
