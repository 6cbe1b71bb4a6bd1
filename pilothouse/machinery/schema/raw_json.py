"""RawExtension: a JSON value that Go preserves as text, so equal values can differ in text.

A RawObject has known text. A plain value, for example after a patch, represents its compact text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from json import JSONDecoder
from typing import Any

import orjson

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import escape_html
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.nodes import NodeKind, TypeNode

RAW_EXTENSION = "runtime.RawExtension"

_SPACE = re.compile(r"[ \t\r\n]*+")
_STRING_OR_SPACE = re.compile(rb'("(?:[^"\\]++|\\.)*+")|[ \t\r\n]++')
# Numbers stay text: their values are irrelevant, and Python limits the digits of integers.
_read_at = JSONDecoder(strict=False, parse_int=str, parse_float=str).raw_decode


class RawObject(dict[str, Any]):
    """A JSON object with its source text; equality compares the text."""

    __slots__ = ("raw",)
    __hash__ = None
    raw: bytes

    @classmethod
    def of(cls, value: Json, raw: bytes) -> RawObject:
        found = cls(value)
        found.raw = raw
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and self.raw == raw_text(other)

    def __ne__(self, other: object) -> bool:
        return not self == other


def raw_text(value: Any) -> bytes:
    """Return the text of a raw value."""
    return value.raw if isinstance(value, RawObject) else orjson.dumps(value)


def dump_exactly(obj: Any, *, sort_keys: bool = False) -> bytes:
    """Return the object as JSON with raw values verbatim."""
    option = orjson.OPT_PASSTHROUGH_SUBCLASS | (orjson.OPT_SORT_KEYS if sort_keys else 0)
    return orjson.dumps(obj, default=_exactly, option=option)


def _exactly(value: Any) -> Any:
    if isinstance(value, RawObject):
        return orjson.Fragment(value.raw)
    if isinstance(value, dict):
        return dict(value)
    raise TypeError(f"{type(value)} is no JSON value")


def compact(text: bytes) -> bytes:
    """Return JSON text without insignificant whitespace."""
    return _STRING_OR_SPACE.sub(rb"\1", text)


@dataclass(frozen=True, slots=True)
class RawFields:
    """Paths to the raw values of a type, through struct fields and list elements."""

    fields: Mapping[str, RawFields] | None = None
    element: RawFields | None = None

    @property
    def is_here(self) -> bool:
        return self.fields is None and self.element is None


def raw_fields_of(node: TypeNode, around: frozenset[TypeNode] = frozenset()) -> RawFields | None:
    """Return the raw fields of a type; None for a type without raw values."""
    if node.kind is NodeKind.ANY:
        return RawFields() if node.go_type == RAW_EXTENSION else None
    if node in around:
        return None
    around |= {node}
    if node.kind is NodeKind.LIST and node.element is not None:
        element = raw_fields_of(node.element, around)
        return None if element is None else RawFields(element=element)
    found = {name: raw_fields_of(field.node, around) for name, field in node.fields.items()}
    known = {name: fields for name, fields in found.items() if fields is not None}
    return RawFields(known) if known else None


def keep_raw(fields: RawFields, data: bytes, obj: Json) -> None:
    """Attach the source text to the raw values in `obj`, which was decoded from `data`."""
    try:
        text = data.decode()
        _Reader(text).object(_after_space(text, 0), fields, obj)
    except (ValueError, RecursionError):
        # Reached only by text at the edge of JSON, which is never compared.
        return


def sort_raw(fields: RawFields, value: Any) -> Any:
    """Give raw values the text that Go writes for a map, with sorted keys, in place; return the value."""
    if fields.is_here:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        ordered = orjson.loads(text)
        return RawObject.of(ordered, escape_html(text.decode()).encode()) if isinstance(ordered, dict) else ordered
    if isinstance(value, list) and fields.element is not None:
        value[:] = [sort_raw(fields.element, item) for item in value]
    elif isinstance(value, dict):
        value |= {name: sort_raw(inner, value[name]) for name, inner in (fields.fields or {}).items() if name in value}
    return value


def keep_unchanged_raw(fields: RawFields, new: Any, old: Any) -> Any:
    """Give raw values of `new` that equal those of `old` the text with which Go prints the old ones, in place; return
    `new`."""
    if fields.is_here:
        if not isinstance(old, RawObject) or isinstance(new, RawObject) or dict(old) != new:
            return new
        return RawObject.of(new, escape_html(compact(old.raw).decode()).encode())
    if isinstance(new, list) and isinstance(old, list) and fields.element is not None:
        element = fields.element
        new[: len(old)] = [keep_unchanged_raw(element, *both) for both in zip(new, old, strict=False)]
    elif isinstance(new, dict) and isinstance(old, dict):
        for name, inner in (fields.fields or {}).items():
            if name in new and name in old:
                new[name] = keep_unchanged_raw(inner, new[name], old[name])
    return new


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


@dataclass(frozen=True, slots=True)
class _Reader:
    """Every method takes the start index of a value and returns the end index."""

    text: str

    def object(self, at: int, fields: RawFields, obj: Json) -> int:
        at = _after_space(self.text, at + 1)
        while self.text[at] != "}":
            key, at = _read_at(self.text, at)
            at = _after_space(self.text, _after_space(self.text, at) + 1)
            inner = None if fields.fields is None else fields.fields.get(key)
            at = self._behind_comma(self._member(at, inner, obj, key))
        return at + 1

    def _member(self, at: int, fields: RawFields | None, container: Any, key: str | int) -> int:
        if fields is None or (isinstance(container, dict) and key not in container):
            return self._skipped(at)
        value = container[key]
        if fields.is_here:
            end = self._skipped(at)
            if isinstance(value, dict):
                container[key] = RawObject.of(value, self.text[at:end].encode())
            return end
        if isinstance(value, dict) and self.text[at] == "{":
            return self.object(at, fields, value)
        if isinstance(value, list) and self.text[at] == "[":
            at, position = _after_space(self.text, at + 1), 0
            while self.text[at] != "]":
                at = self._behind_comma(self._member(at, fields.element, value, position))
                position += 1
            return at + 1
        return self._skipped(at)

    def _skipped(self, at: int) -> int:
        return _read_at(self.text, at)[1]

    def _behind_comma(self, at: int) -> int:
        at = _after_space(self.text, at)
        return _after_space(self.text, at + 1) if self.text[at] == "," else at
