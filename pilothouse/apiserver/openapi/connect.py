"""The routes of storages that take the request over: exec, attach, portforward, proxy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.openapi.parameters import PATH, parameters_of
from pilothouse.apiserver.openapi.place import Place
from pilothouse.apiserver.openapi.route import STRING, Route
from pilothouse.apiserver.registry.interface import Connecter


def connect_routes(served: ServedResource, place: Place) -> Iterator[Route]:
    """The kind of such a subresource is its options. One that has a path among them can be followed by more path."""
    assert isinstance(served.storage, Connecter)
    methods = sorted(served.storage.methods)
    yield from (_route(served, place, method) for method in methods)
    if any(parameter.name == "path" for parameter in parameters_of(served.kind)):
        below = replace(place, path=f"{place.path}/{{path}}", parameters=(*place.parameters, PATH), suffix="WithPath")
        yield from (_route(served, below, method) for method in methods)


def _route(served: ServedResource, place: Place, method: str) -> Route:
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
