"""Strict decoding of configuration files, as upstream: only registered kinds, no unknown fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import NO_VERSION_OR_KIND
from pilothouse.machinery.objects import Json

Shape = Mapping[str, Any]
"""field -> str, bool, int, a nested shape, or a one-element list of these."""

_GO_TYPES = {str: "string", bool: "bool", int: "int"}
_JSON_TYPES = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}


def decode(data: bytes, *, group: str, kind: str, versions: Mapping[str, Shape]) -> Json:
    """Return the decoded document. Raises ValueError."""
    try:
        parsed = parse_yaml(data)
    except YamlError as error:
        raise ValueError(f"{NO_VERSION_OR_KIND}{error}") from None
    document = parsed.value
    if not isinstance(document, dict):
        raise ValueError(f"{NO_VERSION_OR_KIND}the document is no object")
    shape = _shape(document, group, kind, versions)
    problems = [f"unknown field {quote(name)}" for name in _unknown(document, shape, "")]
    if parsed.strict_error:
        problems.insert(0, parsed.strict_error)
    if problems:
        raise ValueError(f"strict decoding error: {', '.join(problems)}")
    return document


def _shape(document: Json, group: str, kind: str, versions: Mapping[str, Shape]) -> Shape:
    for name, label in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not document.get(name):
            raise ValueError(f"Object '{label}' is missing")
    found_group, _, version = str(document["apiVersion"]).partition("/")
    if found_group != group or version not in versions or document["kind"] != kind:
        problem = (
            f"no kind {quote(str(document['kind']))} is registered for version {quote(str(document['apiVersion']))}"
        )
        raise ValueError(f"{problem} in scheme")
    return {"apiVersion": str, "kind": str, **versions[version]}


def _unknown(value: Any, shape: Any, path: str) -> Iterator[str]:
    """Yield the paths of unknown fields. Raises ValueError for a value of the wrong type."""
    if value is None:
        return
    if isinstance(shape, list):
        _check(value, list, path)
        for index, item in enumerate(value):
            yield from _unknown(item, shape[0], f"{path}[{index}]")
    elif isinstance(shape, Mapping):
        _check(value, dict, path)
        for name, item in value.items():
            inner = f"{path}.{name}" if path else name
            if name in shape:
                yield from _unknown(item, shape[name], inner)
            else:
                yield inner
    else:
        _check(value, shape, path)


def _check(value: Any, expected: type, path: str) -> None:
    if isinstance(value, expected):
        return
    wants = _GO_TYPES.get(expected, "struct" if expected is dict else "slice")
    raise ValueError(f"json: cannot unmarshal {_JSON_TYPES[type(value)]} into Go struct field {path} of type {wants}")
