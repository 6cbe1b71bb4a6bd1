"""Field paths of rules and selectable fields: `.spec.name`, `.spec['a key']`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Path

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class InvalidFieldPath(ValueError):
    """The path is invalid; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class FoundField:
    path: Path
    schema: Structural | None
    """None below additionalProperties without a schema."""


def find_field(text: str, schema: Structural, *, brackets: bool = True) -> FoundField:
    """Resolve the path in the schema. Raises InvalidFieldPath."""
    field = FoundField(Path(), schema)
    tokens = iter(_TOKEN.findall(text))
    for token in tokens:
        if token == ".":
            field = _step(field, _next(tokens))
        elif token == "[":
            if not brackets:
                raise InvalidFieldPath("array notation is not allowed")
            field = _step(field, _unquoted(_next(tokens)))
            if (closing := _next(tokens)) != "]":
                raise InvalidFieldPath(f"expected ] but got {closing}")
        else:
            raise InvalidFieldPath(f"expected [ or . but got: {token}")
    return field


def _next(tokens: Iterator[str]) -> str:
    try:
        return next(tokens)
    except StopIteration:
        raise InvalidFieldPath("unexpected end of JSON path") from None


def _unquoted(token: str) -> str:
    if len(token) < 2 or not (token.startswith("'") and token.endswith("'")):
        raise InvalidFieldPath(f"expected single quoted string but got {token}")
    return _ESCAPE.sub(_unescaped, token[1:-1])


def _unescaped(match: re.Match[str]) -> str:
    if match[1] not in _ESCAPED:
        raise InvalidFieldPath(f"invalid string literal: invalid escape char {match[0]}")
    return _ESCAPED[match[1]]


def _step(field: FoundField, name: str) -> FoundField:
    schema = field.schema
    if schema is not None and schema.properties:
        if name in schema.properties:
            return FoundField(field.path.child(name), schema.properties[name])
    elif schema is not None and schema.allows_additional:
        return FoundField(field.path.key(name), schema.additional)
    raise InvalidFieldPath("does not refer to a valid field")
