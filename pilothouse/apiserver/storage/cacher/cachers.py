"""Registry of the watch caches of each store."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

from pilothouse.apiserver.storage.interface import Store

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.cacher.cacher import Cacher

_OF_STORES: WeakKeyDictionary[Store, WeakSet[Cacher]] = WeakKeyDictionary()


def cachers_of(store: Store) -> WeakSet[Cacher]:
    """Return the caches of the store in this process. Both are held by weak references."""
    return _OF_STORES.setdefault(store, WeakSet())
