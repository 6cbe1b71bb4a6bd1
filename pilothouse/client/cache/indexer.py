"""Objects by key, with named indexes. Belongs to one event loop and has no locks.

Whatever it answers is one state of the cache: nothing changes it while a call runs. The objects are shared by
everyone who reads the cache and must not be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, labels_of, namespace_of
from pilothouse.machinery.selectors import labels

IndexFunc: TypeAlias = Callable[[Json], Iterable[str]]
"""The values under which an index finds the object."""

Objects: TypeAlias = list[Json]
Keys: TypeAlias = list[str]

NAMESPACE_INDEX = "namespace"


def namespace_index(obj: Json) -> tuple[str, ...]:
    return (namespace_of(obj),)


class Indexer:
    """Objects by their keys, and by whatever else is to be looked up. An indexer is a function from object to values.

    >>> from pilothouse.client import Indexer
    >>> pods = Indexer({"node": lambda pod: [pod["spec"]["nodeName"]]})
    >>> pods.add({"metadata": {"name": "web"}, "spec": {"nodeName": "n1"}})
    >>> [pod["metadata"]["name"] for pod in pods.by_index("node", "n1")]
    ['web']
    """

    _items: dict[str, Json]
    _indexes: dict[str, dict[str, set[str]]]  # index name → indexed value → keys; no set here is ever empty

    def __init__(self, indexers: Mapping[str, IndexFunc] | None = None) -> None:
        self._items = {}
        self._indexers: dict[str, IndexFunc] = {}
        self._indexes = {}
        self.add_indexers(indexers or {})

    def add(self, obj: Json) -> None:
        """Keep an object, in the place of the one with the same key."""
        self.update(meta_namespace_key(obj), obj)

    def update(self, key: str, obj: Json) -> None:
        """Stores the object under its key, whether or not the key is new."""
        old = self._items.get(key)
        self._items[key] = obj
        for name, values_of in self._indexers.items():
            self._reindex(self._indexes[name], key, _values(values_of, old), _values(values_of, obj))

    def delete(self, key: str) -> None:
        """Forget the object with this key."""
        old = self._items.pop(key, None)
        for name, values_of in self._indexers.items():
            self._reindex(self._indexes[name], key, _values(values_of, old), ())

    def replace(self, objects: Iterable[Json]) -> None:
        """Forgets everything and stores these."""
        self._items.clear()
        for index in self._indexes.values():
            index.clear()
        for obj in objects:
            self.add(obj)

    def get_by_key(self, key: str) -> Json | None:
        """Return the object with this key, or None. It is the cache's own: do not change it."""
        return self._items.get(key)

    def get(self, obj: Json) -> Json | None:
        """The stored object that has the same key as this one."""
        return self._items.get(meta_namespace_key(obj))

    def list(self) -> Objects:
        """Return all objects. They are the cache's own: do not change them."""
        return list(self._items.values())

    def list_keys(self) -> Keys:
        """Return the keys of all objects."""
        return [*self._items]

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def add_indexers(self, indexers: Mapping[str, IndexFunc]) -> None:
        """Adds indexes over what is stored and what will be. Raises ValueError on a name that is taken."""
        if taken := self._indexers.keys() & indexers.keys():
            raise ValueError(f"indexer conflict: {sorted(taken)}")
        for name, values_of in indexers.items():
            index = self._indexes[name] = {}
            self._indexers[name] = values_of
            for key, obj in self._items.items():
                self._reindex(index, key, (), _values(values_of, obj))

    @property
    def indexers(self) -> Mapping[str, IndexFunc]:
        """Return the indexes by name."""
        return self._indexers

    def by_index(self, name: str, value: str) -> Objects:
        """The objects that the index has under the value. Raises KeyError on an unknown index."""
        return [self._items[key] for key in self._indexes[name].get(value, ())]

    def index(self, name: str, obj: Json) -> Objects:
        """The objects that share an indexed value with this one."""
        index = self._indexes[name]
        keys = {key: None for value in self._indexers[name](obj) for key in index.get(value, ())}
        return [self._items[key] for key in keys]

    def index_keys(self, name: str, value: str) -> Keys:
        """Return the keys of the objects that an index has under a value."""
        return sorted(self._indexes[name].get(value, ()))

    def index_values(self, name: str) -> Keys:
        """Every value under which the index has something."""
        return [*self._indexes[name]]

    def _reindex(self, index: dict[str, set[str]], key: str, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        if old == new:
            return
        for value in old:
            if value not in new and (keys := index.get(value)) is not None:
                keys.discard(key)
                if not keys:
                    del index[value]
        for value in new:
            index.setdefault(value, set()).add(key)


def _values(values_of: IndexFunc, obj: Json | None) -> tuple[str, ...]:
    return () if obj is None else tuple(values_of(obj))


class Lister:
    """Answers from the cache only. The objects are shared: copy one before changing it.

    >>> from pilothouse.client import GroupVersionResource, SharedInformerFactory
    >>> async with SharedInformerFactory(client) as factory:
    ...     maps = factory.lister(GroupVersionResource("", "v1", "configmaps"))
    ...     factory.start()
    ...     await factory.wait_for_cache_sync()
    ...     print(len(maps.namespace("default").list("app=web")))
    0
    """

    def __init__(self, indexer: Indexer, resource: GroupResource, *, namespace: str = "") -> None:
        self._indexer = indexer
        self._resource = resource
        self._namespace = namespace

    def namespace(self, namespace: str) -> Lister:
        """Return a lister of one namespace, over the same cache."""
        return Lister(self._indexer, self._resource, namespace=namespace)

    def get(self, name: str) -> Json:
        """Raises NotFound, as the server would."""
        obj = self._indexer.get_by_key(f"{self._namespace}/{name}" if self._namespace else name)
        if obj is None:
            raise NotFound.of(self._resource, name)
        return obj

    def list(self, selector: str | labels.Selector = "") -> Objects:
        """Return the objects that the label selector selects. Raises InvalidSelector."""
        if isinstance(selector, str):
            selector = labels.parse(selector)
        matches = selector.matches
        return [obj for obj in self._candidates() if matches(labels_of(obj))]

    def _candidates(self) -> Objects:
        if not self._namespace:
            return self._indexer.list()
        if NAMESPACE_INDEX in self._indexer.indexers:
            return self._indexer.by_index(NAMESPACE_INDEX, self._namespace)
        return [obj for obj in self._indexer.list() if namespace_of(obj) == self._namespace]
