"""A resource's rules on objects as a client sends them: decoded, defaulted, checked, without a server."""

from __future__ import annotations

from copy import deepcopy

from pilothouse.apiserver import Resource
from pilothouse.client import Json
from pilothouse.machinery.schema import types


def decoded(resource: Resource, obj: Json) -> Json:
    """What the strategy gets to see: the object with its type, its namespace, its zero values and its defaults."""
    kind = types.of(resource.kind)
    assert kind is not None
    made: Json = kind.fit(deepcopy(obj))
    made |= {"kind": resource.kind.kind, "apiVersion": resource.kind.api_version}
    if resource.namespaced:
        made["metadata"].setdefault("namespace", "default")
    made["metadata"].setdefault("name", "x")
    resource.strategy.default(made)
    return made


def refusals(resource: Resource, obj: Json) -> list[str]:
    """Why the object cannot be created."""
    made = decoded(resource, obj)
    resource.strategy.prepare_for_create(made)
    return list(map(str, resource.strategy.validate(made)))


def update_refusals(resource: Resource, obj: Json, old: Json) -> list[str]:
    """Why the old object cannot become the new one."""
    new, before = _stored(resource, obj), _stored(resource, old)
    resource.strategy.prepare_for_update(new, before)
    return list(map(str, resource.strategy.validate_update(new, before)))


def _stored(resource: Resource, obj: Json) -> Json:
    made = decoded(resource, obj)
    made["metadata"] |= {"uid": "u", "resourceVersion": "1", "creationTimestamp": "2024-01-01T00:00:00Z"}
    return made
