"""Parts of a pod in the form of upstream's messages, and diffs of these forms."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from pilothouse.kube.core.pods.internal_types import REORDERED, TYPES
from pilothouse.machinery import version_rules
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import escape_html
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.nodes import TypeNode

_ZEROS: dict[str, Any] = {"s": "", "i": 0, "b": False, "q": "0", "": None}
_CONTEXT_LINES = 3
_CLAIM_TEMPLATE = "PersistentVolumeClaimTemplate"
_HELD_BY_SECURITY_CONTEXT = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
_PRINTED_ELSEWHERE = {
    _CLAIM_TEMPLATE: frozenset({"metadata"}),
    "PodSpec": frozenset({*_HELD_BY_SECURITY_CONTEXT, "serviceAccount"}),
}
"""Fields that the internal type lacks or stores under another name."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    json_name: str
    read: Callable[[Any], Any]


def internal_form(kind: str, value: Json | None) -> Json | None:
    """Return the value as the internal type `kind`: all fields, in the order of the type."""
    if value is None:
        return None
    # The metadata of a claim template is embedded in the template.
    meta: Json = value.get("metadata") or {} if kind == _CLAIM_TEMPLATE else {}
    return meta | {field.name: field.read(value.get(field.json_name)) for field in _fields(kind)}


def internal_pod_spec(spec: Json) -> Json:
    context = (spec.get("securityContext") or {}) | {
        name: spec[name] for name in _HELD_BY_SECURITY_CONTEXT if name in spec
    }
    return internal_form("PodSpec", spec | {"securityContext": context}) or {}


def difference(old: Any, new: Any) -> str:
    """Return a unified diff of two values as indented JSON."""
    lines = difflib.unified_diff(_lines(old), _lines(new), n=_CONTEXT_LINES)
    return "".join(list(lines)[2:])


@cache
def _fields(kind: str) -> tuple[_Field, ...]:
    fields: list[_Field] = []
    struct = _struct(kind)
    for declared in _declared(kind):
        if declared.startswith("+"):
            fields.extend(_fields(declared[1:]))
            continue
        names, _, of = declared.partition(":")
        name, _, json_name = names.partition("=")
        json_name = json_name or name[0].lower() + name[1:]
        # Older versions lack newer fields.
        if json_name in struct.fields or json_name in _HELD_BY_SECURITY_CONTEXT:
            fields.append(_Field(name, json_name, _reader(of)))
    return (*fields, *_further_fields(kind, {field.json_name for field in fields}))


def _declared(kind: str) -> Iterator[str]:
    """Yield the fields of the type in the order of this release."""
    listed = {field.partition(":")[0].partition("=")[0]: field for field in TYPES[kind].split()}
    if kind in REORDERED and version_rules.holds("HostFieldsOfPodSpecs"):
        yield from (listed.get(field, field) for field in REORDERED[kind].split())
    else:
        yield from listed.values()


def _struct(kind: str) -> TypeNode:
    struct = types.definition(f"io.k8s.api.core.v1.{kind}")
    assert struct is not None, kind
    return struct


def _further_fields(kind: str, listed: set[str]) -> Iterator[_Field]:
    """Yield fields of the built-in types' overlay that `internal_types` does not list. The fields print as in JSON."""
    for name in _struct(kind).fields:
        if name not in listed and name not in _PRINTED_ELSEWHERE.get(kind, ()):
            yield _Field(name[0].upper() + name[1:], name, _reader(""))


def _reader(kind: str) -> Callable[[Any], Any]:
    if kind in _ZEROS:
        zero = _ZEROS[kind]
        return lambda value: zero if value is None else _sorted(value)
    if kind == "l":
        return _label_selector
    if kind.startswith("[]"):
        return lambda values: None if values is None else [internal_form(kind[2:], value) for value in values]
    if kind.startswith("*"):
        return lambda value: internal_form(kind[1:], value)
    return lambda value: internal_form(kind, value or {})


def _label_selector(selector: Json | None) -> Json | None:
    if selector is None:
        return None
    printed: Json = {"matchLabels": _sorted(selector["matchLabels"])} if selector.get("matchLabels") else {}
    if expressions := selector.get("matchExpressions"):
        names = ("key", "operator", "values")
        printed["matchExpressions"] = [
            {name: expression[name] for name in names if name in expression} for expression in expressions
        ]
    return printed


def _sorted(value: Any) -> Any:
    return dict(sorted(value.items())) if isinstance(value, dict) else value


def _lines(value: Any) -> list[str]:
    text = escape_html(json.dumps(value, indent=1, ensure_ascii=False))
    return [line + "\n" for line in text.split("\n")]
