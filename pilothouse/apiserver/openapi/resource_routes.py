"""The routes of a resource or subresource: which there are follows from its verbs, as in the installer."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.apiserver.endpoints.groups import APIVersion, ServedResource
from pilothouse.apiserver.endpoints.install import verbs_of
from pilothouse.apiserver.openapi import verbs
from pilothouse.apiserver.openapi.connect import connect_routes
from pilothouse.apiserver.openapi.place import Places
from pilothouse.apiserver.openapi.route import Route
from pilothouse.apiserver.registry.interface import Connecter, GetterWithOptions

_ON_COLLECTION = {
    "list": verbs.list_route,
    "create": verbs.create_route,
    "deletecollection": verbs.delete_collection_route,
}
_ON_ITEM = {
    "get": verbs.get_route,
    "update": verbs.update_route,
    "patch": verbs.patch_route,
    "delete": verbs.delete_route,
}


def resource_routes(version: APIVersion, served: ServedResource) -> Iterator[Route]:
    places = Places(version.group_version, served)
    if isinstance(served.storage, Connecter) and not isinstance(served.storage, GetterWithOptions):
        yield from connect_routes(served, places.item)
        return
    can = verbs_of(served.storage, subresource=bool(served.subresource))
    collection = places.item if served.subresource else places.collection
    yield from (make(served, collection) for verb, make in _ON_COLLECTION.items() if verb in can)
    yield from (make(served, places.item) for verb, make in _ON_ITEM.items() if verb in can)
    if "list" in can and served.namespaced:
        yield verbs.list_route(served, places.everywhere)
    if "list" in can and "watch" in can:
        yield from _watch_routes(served, places)


def _watch_routes(served: ServedResource, places: Places) -> Iterator[Route]:
    """Deprecated since watching is a parameter of listing, and still served."""
    yield verbs.watch_list_route(served, places.watched(places.collection))
    yield verbs.watch_route(served, places.watched(places.item))
    if served.namespaced:
        yield verbs.watch_list_route(served, places.watched(places.everywhere))
