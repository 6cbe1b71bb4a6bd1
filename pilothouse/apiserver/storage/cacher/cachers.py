"""The watch caches that stand before one store, for those who have to tell all of them something."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

from pilothouse.apiserver.storage.interface import Store

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.cacher.cacher import Cacher

_OF_STORES: WeakKeyDictionary[Store, WeakSet[Cacher]] = WeakKeyDictionary()


def cachers_of(store: Store) -> WeakSet[Cacher]:
    """Return the caches of this process that were made for the store. Both go when nobody else has them any more."""
    return _OF_STORES.setdefault(store, WeakSet())
