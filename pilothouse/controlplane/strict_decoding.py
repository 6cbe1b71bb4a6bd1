"""Configuration files as upstream's strict decoder reads them: one of certain kinds, and no field that is not known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import NO_VERSION_OR_KIND
from pilothouse.machinery.objects import Json

Shape = Mapping[str, Any]
"""From fields to str, bool, a shape, or a list of one of these."""

_GO_TYPES = {str: "string", bool: "bool", int: "int"}
_JSON_TYPES = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}


def decode(data: bytes, *, group: str, kind: str, versions: Mapping[str, Shape]) -> Json:
    """Raises ValueError."""
    try:
        parsed = parse_yaml(data)
    except YamlError as error:
        raise ValueError(f"{NO_VERSION_OR_KIND}{error}") from None
    found = parsed.value
    if not isinstance(found, dict):
        raise ValueError(f"{NO_VERSION_OR_KIND}the document is no object")
    shape = _shape(found, group, kind, versions)
    problems = [f"unknown field {quote(name)}" for name in _unknown(found, shape, "")]
    if parsed.strict_error:
        problems.insert(0, parsed.strict_error)
    if problems:
        raise ValueError(f"strict decoding error: {', '.join(problems)}")
    return found


def _shape(found: Json, group: str, kind: str, versions: Mapping[str, Shape]) -> Shape:
    for name, shown in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not found.get(name):
            raise ValueError(f"Object '{shown}' is missing")
    found_group, _, version = str(found["apiVersion"]).partition("/")
    if found_group != group or version not in versions or found["kind"] != kind:
        what = f"no kind {quote(str(found['kind']))} is registered for version {quote(str(found['apiVersion']))}"
        raise ValueError(f"{what} in scheme")
    return {"apiVersion": str, "kind": str, **versions[version]}


def _unknown(value: Any, shape: Any, path: str) -> Iterator[str]:
    """The paths of fields that are not known. Raises ValueError for a value of the wrong type."""
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


def _check(value: Any, wanted: type, path: str) -> None:
    if isinstance(value, wanted):
        return
    wants = _GO_TYPES.get(wanted, "struct" if wanted is dict else "slice")
    raise ValueError(f"json: cannot unmarshal {_JSON_TYPES[type(value)]} into Go struct field {path} of type {wants}")
