"""Kubernetes objects as JSON: accessors used by every layer, equality, and compact copies of encoded objects.

Accessors accept missing and null fields and return Go's zero value. Python's `==` is too lenient for JSON: True == 1 ==
1.0.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from pilothouse.machinery.checkpoints import checkpoint

Json: TypeAlias = dict[str, Any]
"""JSON object. Values are orjson's: dict, list, str, int, float, bool, None."""

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
"""All metadata fields in Go's order."""


def metadata(obj: Json) -> Json:
    """Return the object's metadata; create it if missing, so that callers can modify it."""
    meta: Json | None = obj.get("metadata")
    if meta is None:
        meta = obj["metadata"] = {}
    return meta


def without_empty(obj: Json) -> Json:
    """Return a copy without fields that are empty, zero, false or null."""
    return {name: value for name, value in obj.items() if value}


def drop_resource_version(obj: Json) -> Json:
    """Remove the resourceVersion from an object that is computed and not stored; return the object."""
    metadata(obj).pop("resourceVersion", None)
    return obj


def name_of(obj: Json) -> str:
    """Return the object's name, or "".

    >>> from pilothouse.client import name_of
    >>> name_of({"metadata": {"name": "a"}}), name_of({})
    ('a', '')
    """
    return str((obj.get("metadata") or {}).get("name") or "")


def namespace_of(obj: Json) -> str:
    """Return the object's namespace, or "".

    >>> from pilothouse.client import namespace_of
    >>> namespace_of({"metadata": {"namespace": "a"}}), namespace_of({})
    ('a', '')
    """
    return str((obj.get("metadata") or {}).get("namespace") or "")


def uid_of(obj: Json) -> str:
    """Return the object's uid, or "".

    >>> from pilothouse.client import uid_of
    >>> uid_of({"metadata": {"uid": "a"}}), uid_of({})
    ('a', '')
    """
    return str((obj.get("metadata") or {}).get("uid") or "")


def resource_version_of(obj: Json) -> str:
    return str((obj.get("metadata") or {}).get("resourceVersion") or "")


def labels_of(obj: Json) -> dict[str, str]:
    """Return the object's labels, or an empty dict.

    >>> from pilothouse.client import labels_of
    >>> labels_of({"metadata": {"labels": {"a": "1"}}})
    {'a': '1'}
    """
    return (obj.get("metadata") or {}).get("labels") or {}


def annotations_of(obj: Json) -> dict[str, str]:
    """Return the object's annotations, or an empty dict.

    >>> from pilothouse.client import annotations_of
    >>> annotations_of({"metadata": {"annotations": {"a": "1"}}})
    {'a': '1'}
    """
    return (obj.get("metadata") or {}).get("annotations") or {}


def part(obj: Json, *names: str) -> Json:
    """Return the nested object, or an empty dict.

    >>> part({"spec": {"template": {"spec": {}}}}, "spec", "template")
    {'spec': {}}
    """
    for name in names:
        obj = obj.get(name) or {}
    return obj


def number(obj: Json, *names: str) -> int:
    """Return the nested number, or 0."""
    value: Any = obj
    for name in names:
        value = value.get(name)
        if not value:
            return 0
    return value  # type: ignore[no-any-return]


def text(obj: Json, *names: str) -> str:
    """Return the nested string, or ""."""
    value: Any = obj
    for name in names:
        value = value.get(name)
        if not value:
            return ""
    return value  # type: ignore[no-any-return]


def items(obj: Json, *names: str) -> list[Any]:
    """Return the nested list, or an empty list."""
    value: Any = obj
    for name in names:
        value = value.get(name)
        if not value:
            return []
    return value  # type: ignore[no-any-return]


def deep_equal(a: Any, b: Any) -> bool:
    """Report equality as Go's reflect.DeepEqual: true, 1 and 1.0 are all different."""
    checkpoint()
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(deep_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(deep_equal, a, b))
    return bool(a == b)


def json_equal(a: Any, b: Any) -> bool:
    """Report equality as JSON: 1 equals 1.0, but true does not equal 1."""
    if a != b:
        return False
    if isinstance(a, dict):
        return all(json_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return all(map(json_equal, a, b))
    return isinstance(a, bool) == isinstance(b, bool)


def copy_compact(dumped: bytes) -> bytes:
    """Return the bytes in a buffer of exactly their size.

    orjson returns its growing buffer, which doubles as needed: 60 bytes occupy 4 kB, and 4.5 kB occupy 16 kB.
    """
    return bytes(memoryview(dumped))
