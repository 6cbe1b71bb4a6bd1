"""Reads an informer's cache: all of it, one namespace of it, or what a label selector selects."""

from __future__ import annotations

from pilothouse.client.cache.indexer import NAMESPACE_INDEX, Indexer, Objects
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, labels_of, namespace_of
from pilothouse.machinery.selectors import labels


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
