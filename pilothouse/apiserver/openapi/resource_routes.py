"""The routes of a resource or subresource, derived from its verbs as in the installer.

Storages that take over the connection (exec, attach, portforward, proxy) have a route per method.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import APIVersion, ServedResource
from pilothouse.apiserver.endpoints.install import verbs_of
from pilothouse.apiserver.openapi import verbs
from pilothouse.apiserver.openapi.route import PATH, STRING, Route, parameters_of
from pilothouse.apiserver.openapi.verbs import ResourcePath, ResourcePaths
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
    places = ResourcePaths(version.group_version, served)
    if isinstance(served.storage, Connecter) and not isinstance(served.storage, GetterWithOptions):
        yield from _connect_routes(served, places.item)
        return
    can = verbs_of(served.storage, subresource=bool(served.subresource))
    collection = places.item if served.subresource else places.collection
    yield from (make(served, collection) for verb, make in _ON_COLLECTION.items() if verb in can)
    yield from (make(served, places.item) for verb, make in _ON_ITEM.items() if verb in can)
    if "list" in can and served.namespaced:
        yield verbs.list_route(served, places.everywhere)
    if "list" in can and "watch" in can:
        yield from _watch_routes(served, places)


def _watch_routes(served: ServedResource, places: ResourcePaths) -> Iterator[Route]:
    """Yield the deprecated watch paths."""
    yield verbs.watch_list_route(served, places.watched(places.collection))
    yield verbs.watch_route(served, places.watched(places.item))
    if served.namespaced:
        yield verbs.watch_list_route(served, places.watched(places.everywhere))


def _connect_routes(served: ServedResource, place: ResourcePath) -> Iterator[Route]:
    """Yield the routes of a connect subresource, whose kind is its options. A `path` option allows a subpath."""
    assert isinstance(served.storage, Connecter)
    methods = sorted(served.storage.methods)
    yield from (_route(served, place, method) for method in methods)
    if any(parameter.name == "path" for parameter in parameters_of(served.kind)):
        below = replace(place, path=f"{place.path}/{{path}}", parameters=(*place.parameters, PATH), suffix="WithPath")
        yield from (_route(served, below, method) for method in methods)


def _route(served: ServedResource, place: ResourcePath, method: str) -> Route:
    kind, subresource = served.names.kind, served.subresource
    what = f"{subresource} of {kind}" if subresource else kind
    return Route(
        method=method.lower(),
        path=place.path,
        operation=f"connect{method.capitalize()}{place.prefix}{kind}{subresource.capitalize()}{place.suffix}",
        description=f"connect {method} requests to {what}",
        responses={200: STRING},
        produces=("*/*",),
        parameters=(*parameters_of(served.kind), *place.parameters),
        action="connect",
        kind=served.kind,
    )
