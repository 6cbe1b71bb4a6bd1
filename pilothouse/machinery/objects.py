"""A Kubernetes object is a JSON object; these are the few accessors that every layer needs.

Accessors never fail on a missing or null part: they answer what Go's zero value would be.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
"""One JSON object. Values are what orjson makes: dict, list, str, int, float, bool, None."""

METADATA_ORDER = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
"""All fields of metadata, as Go orders them."""


def metadata(obj: Json) -> Json:
    """The object's metadata, which is made when it is missing, so that callers may write to it."""
    meta: Json | None = obj.get("metadata")
    if meta is None:
        meta = obj["metadata"] = {}
    return meta


def without_empty(obj: Json) -> Json:
    """Return a copy without fields that are empty, zero, false or null."""
    return {name: value for name, value in obj.items() if value}


def name_of(obj: Json) -> str:
    """Return the object's name; empty if it has none.

    >>> from pilothouse.client import name_of
    >>> name_of({"metadata": {"name": "a"}}), name_of({})
    ('a', '')
    """
    return str((obj.get("metadata") or {}).get("name") or "")


def namespace_of(obj: Json) -> str:
    """Return the object's namespace; empty if it has none.

    >>> from pilothouse.client import namespace_of
    >>> namespace_of({"metadata": {"namespace": "a"}}), namespace_of({})
    ('a', '')
    """
    return str((obj.get("metadata") or {}).get("namespace") or "")


def uid_of(obj: Json) -> str:
    """Return the object's uid; empty if it has none.

    >>> from pilothouse.client import uid_of
    >>> uid_of({"metadata": {"uid": "a"}}), uid_of({})
    ('a', '')
    """
    return str((obj.get("metadata") or {}).get("uid") or "")


def resource_version_of(obj: Json) -> str:
    return str((obj.get("metadata") or {}).get("resourceVersion") or "")


def labels_of(obj: Json) -> dict[str, str]:
    """Return the object's labels; empty if it has none.

    >>> from pilothouse.client import labels_of
    >>> labels_of({"metadata": {"labels": {"a": "1"}}})
    {'a': '1'}
    """
    return (obj.get("metadata") or {}).get("labels") or {}


def annotations_of(obj: Json) -> dict[str, str]:
    """Return the object's annotations; empty if it has none.

    >>> from pilothouse.client import annotations_of
    >>> annotations_of({"metadata": {"annotations": {"a": "1"}}})
    {'a': '1'}
    """
    return (obj.get("metadata") or {}).get("annotations") or {}


def part(obj: Json, *names: str) -> Json:
    """Return the object that the names lead to, empty where there is none.

    >>> part({"spec": {"template": {"spec": {}}}}, "spec", "template")
    {'spec': {}}
    """
    for name in names:
        obj = obj.get(name) or {}
    return obj


def number(obj: Json, *names: str) -> int:
    """Return the number that the names lead to, 0 where there is none."""
    *path, last = names
    return part(obj, *path).get(last) or 0


def text(obj: Json, *names: str) -> str:
    """Return the string that the names lead to, empty where there is none."""
    *path, last = names
    return part(obj, *path).get(last) or ""


def items(obj: Json, *names: str) -> list[Any]:
    """Return the list that the names lead to, empty where there is none."""
    *path, last = names
    return part(obj, *path).get(last) or []
