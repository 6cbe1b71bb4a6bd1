"""How objects are named in caches and queues: `namespace/name`, or `name` for what has no namespace."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class DeletedFinalStateUnknown:
    """A tombstone: the object was found gone by a list, so its deletion was not seen.

    `obj` is the last state that was known and may be older than the one that was deleted.

    >>> from pilothouse.client import DeletedFinalStateUnknown
    >>> DeletedFinalStateUnknown("default/web", {"metadata": {"name": "web"}}).key
    'default/web'
    """

    key: str
    obj: Json | None


@dataclass(frozen=True, slots=True)
class ObjectName:
    """An object's namespace, empty where it has none, and its name.

    >>> from pilothouse.client import ObjectName
    >>> str(ObjectName("default", "web")), str(ObjectName("", "node-1"))
    ('default/web', 'node-1')
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def meta_namespace_key(obj: Json) -> str:
    """The object's key. Raises KeyError on something that has no metadata or no name.

    >>> from pilothouse.client import meta_namespace_key
    >>> meta_namespace_key({"metadata": {"namespace": "default", "name": "web"}})
    'default/web'
    """
    meta = obj["metadata"]
    namespace = meta.get("namespace")
    name: str = meta["name"]
    return f"{namespace}/{name}" if namespace else name


def deletion_handling_key(obj: Json | DeletedFinalStateUnknown) -> str:
    """The key of an object or of a tombstone: what delete handlers put on a queue."""
    return obj.key if isinstance(obj, DeletedFinalStateUnknown) else meta_namespace_key(obj)


def split_meta_namespace_key(key: str) -> ObjectName:
    """Return the namespace and the name of a key. Raises ValueError on a key with more than one slash.

    >>> from pilothouse.client import split_meta_namespace_key
    >>> split_meta_namespace_key("default/web").name
    'web'
    """
    namespace, _, name = key.rpartition("/")
    if "/" in namespace:
        raise ValueError(f"unexpected key format: {key!r}")
    return ObjectName(namespace, name)


def last_known_state(obj: Json | DeletedFinalStateUnknown) -> Json | None:
    """Return the object that a delete handler was given, with the tombstone taken off."""
    return obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
