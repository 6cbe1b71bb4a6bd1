"""Strict decoding of discovery documents from aggregated servers.

The documents become part of the one document that every client decodes. A field of the wrong type must fail here, where
the failure affects one server only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import orjson

from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json

Versions: TypeAlias = dict[GroupVersion, Json]
"""Group version → its entry in an aggregated document, without freshness."""

_SCOPES = ("Namespaced", "Cluster")


class MalformedDiscovery(Exception):
    """The document does not have the declared form."""


def decode_group_list(body: bytes) -> Versions:
    """Decode an APIGroupDiscoveryList; v2 and v2beta1 have the same form."""
    versions: Versions = {}
    for group in _objects(_loads(body), "items"):
        name = _string(_object(group, "metadata"), "name")
        for version in _objects(group, "versions"):
            resources = [_resource(resource) for resource in _objects(version, "resources")]
            decoded = {"version": _string(version, "version"), **_list("resources", resources)}
            versions[GroupVersion(name, decoded["version"])] = decoded
    return versions


def decode_resource_list(body: bytes, group_version: GroupVersion) -> Versions:
    """Decode an APIResourceList, from a server without aggregated discovery."""
    parents: dict[str, Json] = {}
    resources = [
        {
            "resource": _string(entry, "name"),
            "responseKind": _kind(entry),
            "scope": _SCOPES[0] if _checked(entry, "namespaced", bool, False) else _SCOPES[1],
            "singularResource": _string(entry, "singularName"),
            "verbs": _strings(entry, "verbs"),
            **_list("shortNames", _strings(entry, "shortNames")),
            **_list("categories", _strings(entry, "categories")),
        }
        for entry in _objects(_loads(body), "resources")
    ]
    for resource in resources:
        if "/" not in resource["resource"]:
            parents[resource["resource"]] = resource
    for resource in resources:
        name, slash, subresource = resource["resource"].partition("/")
        if slash:
            _add_subresource(parents, name, {**resource, "resource": subresource})
    shown = {"version": group_version.version, **_list("resources", list(parents.values()))}
    return {group_version: shown}


def _resource(resource: Json) -> Json:
    scope = _string(resource, "scope")
    if scope not in _SCOPES:
        raise MalformedDiscovery(f"scope is {scope!r}")
    subresources = [_subresource(subresource) for subresource in _objects(resource, "subresources")]
    return {
        "resource": _string(resource, "resource"),
        "responseKind": _kind(_object(resource, "responseKind")),
        "scope": scope,
        "singularResource": _string(resource, "singularResource"),
        "verbs": _strings(resource, "verbs"),
        **_list("shortNames", _strings(resource, "shortNames")),
        **_list("categories", _strings(resource, "categories")),
        **_list("subresources", subresources),
    }


def _subresource(subresource: Json) -> Json:
    types = [_kind(kind) for kind in _objects(subresource, "acceptedTypes")]
    return {
        "subresource": _string(subresource, "subresource"),
        "responseKind": _kind(_object(subresource, "responseKind")),
        **_list("acceptedTypes", types),
        "verbs": _strings(subresource, "verbs"),
    }


def _kind(kind: Json) -> Json:
    """Return the kind; an empty kind if absent, because old Go clients require the field."""
    return {key: _string(kind, key) for key in ("group", "version", "kind")}


def _add_subresource(parents: dict[str, Json], name: str, child: Json) -> None:
    orphaned = {"resource": name, "responseKind": _kind({}), "scope": child["scope"]}
    parent = parents.setdefault(name, orphaned | {"singularResource": "", "verbs": []})
    if parent["scope"] != child["scope"]:
        raise MalformedDiscovery(f"{name} and its subresource {child['resource']} are not of the same scope")
    kind: Json = child["responseKind"]
    shown = {
        "subresource": child["resource"],
        "responseKind": (kind if kind["kind"] else _kind({})),
        "verbs": child["verbs"],
    }
    parent.setdefault("subresources", []).append(shown)


def _loads(body: bytes) -> Json:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedDiscovery(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise MalformedDiscovery("not a JSON object")
    return document


def _checked(obj: Json, key: str, kind: type, default: Any) -> Any:
    value = obj.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise MalformedDiscovery(f"{key} is {value!r}")
    return value


def _string(obj: Json, key: str) -> str:
    value: str = _checked(obj, key, str, "")
    return value


def _object(obj: Json, key: str) -> Json:
    value: Json = _checked(obj, key, dict, {})
    return value


def _objects(obj: Json, key: str) -> Iterator[Json]:
    yield from _each(obj, key, lambda value: isinstance(value, dict))


def _strings(obj: Json, key: str) -> list[str]:
    return list(_each(obj, key, lambda value: isinstance(value, str)))


def _each(obj: Json, key: str, is_right: Callable[[Any], bool]) -> Iterator[Any]:
    for value in _checked(obj, key, list, []):
        if not is_right(value):
            raise MalformedDiscovery(f"{key} has {value!r} in it")
        yield value


def _list(key: str, values: list[Any]) -> Json:
    return {key: values} if values else {}
