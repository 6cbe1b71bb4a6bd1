"""Indexer: objects by key, with named indexes. Lister: read access to an indexer.

An indexer belongs to one event loop and has no locks. Every method sees one consistent state of the cache. Objects are
shared by all readers and must not be modified.

CacheMutationDetector detects illegal modifications of cached objects. The detector copies every object, and is intended
for tests. As upstream, KUBE_CACHE_MUTATION_DETECTOR=true enables the detector for every informer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from pilothouse.client.cache.keys import decoded, encoded, meta_namespace_key
from pilothouse.client.clock import Clock
from pilothouse.machinery.codec.json import canonical_json
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, labels_of, namespace_of
from pilothouse.machinery.selectors import labels

IndexFunc: TypeAlias = Callable[[Json], Iterable[str]]
"""Return the values under which an index files the object."""

Objects: TypeAlias = list[Json]
Keys: TypeAlias = list[str]

NAMESPACE_INDEX = "namespace"


def namespace_index(obj: Json) -> tuple[str, ...]:
    return (namespace_of(obj),)


class Indexer:
    """Thread-unsafe store with indexes. An index function maps an object to the values that find the object.

    >>> from pilothouse.client import Indexer
    >>> pods = Indexer({"node": lambda pod: [pod["spec"]["nodeName"]]})
    >>> pods.add({"metadata": {"name": "web"}, "spec": {"nodeName": "n1"}})
    >>> [pod["metadata"]["name"] for pod in pods.by_index("node", "n1")]
    ['web']
    """

    _items: dict[str, Json]
    _indexes: dict[str, dict[str, set[str]]]  # index name → indexed value → keys; no set is empty

    def __init__(self, indexers: Mapping[str, IndexFunc] | None = None) -> None:
        self._items = {}
        self._indexers: dict[str, IndexFunc] = {}
        self._indexes = {}
        self.add_indexers(indexers or {})

    def add(self, obj: Json) -> None:
        """Store the object; replace the stored object with the same key."""
        self.update(meta_namespace_key(obj), obj)

    def update(self, key: str, obj: Json) -> None:
        """Store the object under `key`; replace any previous object."""
        self.replace_one(key, self.get_by_key(key), obj)

    def replace_one(self, key: str, old: Json | None, obj: Json | bytes) -> None:
        """Store the object under `key`. `old` is the stored object of this key, if any."""
        new = decoded(obj)
        self._items[key] = new
        self._index(key, old, new)

    def _index(self, key: str, old: Json | None, new: Json | None) -> None:
        for name, values_of in self._indexers.items():
            self._reindex(self._indexes[name], key, _values(values_of, old), _values(values_of, new))

    def delete(self, key: str) -> None:
        """Remove the object with this key. Unknown keys are ignored."""
        old = self._items.pop(key, None)
        self._index(key, old, None)

    def replace(self, objects: Iterable[Json]) -> None:
        """Remove every object, then store `objects`."""
        self._items.clear()
        for index in self._indexes.values():
            index.clear()
        for obj in objects:
            self.add(obj)

    def get_by_key(self, key: str) -> Json | None:
        """Return the object with this key, or None. The cache owns the object: do not modify it."""
        return self._items.get(key)

    def get(self, obj: Json) -> Json | None:
        """Return the stored object with the same key as `obj`, or None."""
        return self._items.get(meta_namespace_key(obj))

    def list(self) -> Objects:
        """Return all objects. The cache owns the objects: do not modify them."""
        return list(self._items.values())

    def stored(self) -> Sequence[Json | bytes]:
        """Return all objects in the form in which they are stored."""
        return list(self._items.values())

    def list_keys(self) -> Keys:
        """Return the keys of all objects."""
        return [*self._items]

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def add_indexers(self, indexers: Mapping[str, IndexFunc]) -> None:
        """Add indexes over stored and future objects. Raises ValueError if an index name is in use."""
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
        """Return the objects filed under `value`. Raises KeyError for an unknown index."""
        return [self._items[key] for key in self._indexes[name].get(value, ())]

    def index(self, name: str, obj: Json) -> Objects:
        """Return the objects that share an indexed value with `obj`."""
        index = self._indexes[name]
        keys = {key: None for value in self._indexers[name](obj) for key in index.get(value, ())}
        return [self._items[key] for key in keys]

    def index_keys(self, name: str, value: str) -> Keys:
        """Return the sorted keys of the objects filed under `value`."""
        return sorted(self._indexes[name].get(value, ()))

    def index_values(self, name: str) -> Keys:
        """Return every value of the index that has at least one object."""
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


class CompactIndexer(Indexer):
    """Indexer that keeps objects as JSON text: about 60 % of the memory, and a few microseconds for each read.

    Each read returns a new copy. The garbage collector does not visit the stored objects.
    """

    _texts: dict[str, bytes]

    def __init__(self, indexers: Mapping[str, IndexFunc] | None = None) -> None:
        self._texts = {}
        super().__init__(indexers)

    def replace_one(self, key: str, old: Json | None, obj: Json | bytes) -> None:
        """Store the object under `key`. `old` is the stored object of this key, if any."""
        self._texts[key] = obj if isinstance(obj, bytes) else encoded(obj)
        self._index(key, old, decoded(obj))

    def delete(self, key: str) -> None:
        """Remove the object with this key. Unknown keys are ignored."""
        text = self._texts.pop(key, None)
        self._index(key, None if text is None else decoded(text), None)

    def replace(self, objects: Iterable[Json]) -> None:
        """Remove every object, then store `objects`."""
        self._texts.clear()
        super().replace(objects)

    def get_by_key(self, key: str) -> Json | None:
        """Return a copy of the object with this key, or None."""
        text = self._texts.get(key)
        return None if text is None else decoded(text)

    def get(self, obj: Json) -> Json | None:
        """Return a copy of the stored object with the same key as `obj`, or None."""
        return self.get_by_key(meta_namespace_key(obj))

    def list(self) -> Objects:
        """Return copies of all objects."""
        return [decoded(text) for text in self._texts.values()]

    def stored(self) -> Sequence[Json | bytes]:
        """Return the JSON text of all objects."""
        return [*self._texts.values()]

    def containing(self, parts: Iterable[bytes], *, index: str = "", value: str = "") -> Objects:
        """Return copies of the objects whose JSON text has all the parts, of all or of those filed under `value`."""
        texts = self._texts
        found = [texts[key] for key in self._indexes[index].get(value, ())] if index else [*texts.values()]
        for part in parts:
            found = [text for text in found if part in text]
        return [decoded(text) for text in found]

    def list_keys(self) -> Keys:
        """Return the keys of all objects."""
        return [*self._texts]

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, key: str) -> bool:
        return key in self._texts

    def add_indexers(self, indexers: Mapping[str, IndexFunc]) -> None:
        """Add indexes over stored and future objects. Raises ValueError if an index name is in use."""
        super().add_indexers(indexers)
        for name, values_of in indexers.items():
            for key, text in self._texts.items():
                self._reindex(self._indexes[name], key, (), _values(values_of, decoded(text)))

    def by_index(self, name: str, value: str) -> Objects:
        """Return copies of the objects filed under `value`. Raises KeyError for an unknown index."""
        return [decoded(self._texts[key]) for key in self._indexes[name].get(value, ())]

    def index(self, name: str, obj: Json) -> Objects:
        """Return copies of the objects that share an indexed value with `obj`."""
        index = self._indexes[name]
        keys = {key: None for value in self._indexers[name](obj) for key in index.get(value, ())}
        return [decoded(self._texts[key]) for key in keys]


class Lister:
    """Read access to an informer's cache, without requests to the server. Objects are shared: copy before modifying.

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
        """Return the object. Raises NotFound with the server's message."""
        obj = self._indexer.get_by_key(f"{self._namespace}/{name}" if self._namespace else name)
        if obj is None:
            raise NotFound.of(self._resource, name)
        return obj

    def list(self, selector: str | labels.Selector = "") -> Objects:
        """Return the objects that match the label selector. Raises InvalidSelector."""
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


PERIOD = 1.0
RETAIN = 120.0


class CacheMutated(AssertionError):
    """A cached object differs from its state at insertion."""


class CacheMutationDetector:
    _cached: list[tuple[Json, bytes]]  # objects of the current retention period, with their serialized form
    _retained: list[tuple[Json, bytes]]  # objects of the previous retention period

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._cached = []
        self._retained = []
        self._rotated = clock.now()

    def add_object(self, obj: Json) -> None:
        self._cached.append((obj, canonical_json(obj)))

    def compare_objects(self) -> None:
        """Raises CacheMutated with the original and the current state of the first modified object."""
        for obj, original in (*self._retained, *self._cached):
            if canonical_json(obj) != original:
                now = canonical_json(obj).decode()
                raise CacheMutated(f"cache {self._name} modified\n  was {original.decode()}\n  is  {now}")

    async def run(self) -> None:
        try:
            while True:
                if self._clock.now() - self._rotated > RETAIN:
                    self._retained, self._cached = self._cached, []
                    self._rotated = self._clock.now()
                self.compare_objects()
                await self._clock.sleep(PERIOD)
        finally:
            self.compare_objects()


def detector_from_environment(name: str, clock: Clock) -> CacheMutationDetector | None:
    enabled = os.environ.get("KUBE_CACHE_MUTATION_DETECTOR", "").lower() in ("1", "t", "true")
    return CacheMutationDetector(name, clock) if enabled else None
