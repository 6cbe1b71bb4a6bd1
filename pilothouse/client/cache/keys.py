"""Keys of objects in caches and queues: `namespace/name`, or `name` for cluster-scoped objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import orjson

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class DeletedFinalStateUnknown:
    """Tombstone of an object whose deletion event was missed: a list no longer contained the object.

    `obj` is the last known state. The deleted state may be newer.

    >>> from pilothouse.client import DeletedFinalStateUnknown
    >>> DeletedFinalStateUnknown("default/web", {"metadata": {"name": "web"}}).key
    'default/web'
    """

    key: str
    obj: Json | None


@dataclass(frozen=True, slots=True)
class ObjectName:
    """Namespace (empty for cluster-scoped objects) and name; unpacks into the two.

    >>> from pilothouse.client import ObjectName
    >>> str(ObjectName("default", "web")), str(ObjectName("", "node-1"))
    ('default/web', 'node-1')
    >>> namespace, name = ObjectName("default", "web")
    """

    namespace: str
    name: str

    def __iter__(self) -> Iterator[str]:
        yield self.namespace
        yield self.name

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def meta_namespace_key(obj: Json) -> str:
    """Return the object's key. Raises KeyError if the object has no metadata or no name.

    >>> from pilothouse.client import meta_namespace_key
    >>> meta_namespace_key({"metadata": {"namespace": "default", "name": "web"}})
    'default/web'
    """
    meta = obj["metadata"]
    namespace = meta.get("namespace")
    name: str = meta["name"]
    return f"{namespace}/{name}" if namespace else name


def encoded(obj: Json) -> bytes:
    """Return the JSON text of an object, for a compact cache or queue."""
    # A copy: orjson shrinks a larger buffer in place, which leaves a hole in the heap behind each text.
    return memoryview(orjson.dumps(obj)).tobytes()


def decoded(obj: Json | bytes) -> Json:
    """Return an object of a compact cache or queue, which holds JSON text."""
    return cast("Json", orjson.loads(obj)) if isinstance(obj, bytes) else obj


def deletion_handling_key(obj: Json | DeletedFinalStateUnknown) -> str:
    """Return the key of an object or of a tombstone, for use in delete handlers."""
    return obj.key if isinstance(obj, DeletedFinalStateUnknown) else meta_namespace_key(obj)


def split_meta_namespace_key(key: str) -> ObjectName:
    """Return the namespace and the name of a key. Raises ValueError for a key with more than one slash.

    >>> from pilothouse.client import split_meta_namespace_key
    >>> namespace, name = split_meta_namespace_key("default/web")
    >>> name
    'web'
    """
    namespace, _, name = key.rpartition("/")
    if "/" in namespace:
        raise ValueError(f"unexpected key format: {key!r}")
    return ObjectName(namespace, name)


def last_known_state(obj: Json | DeletedFinalStateUnknown) -> Json | None:
    """Return the object of a delete notification; unwrap a tombstone."""
    return obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
