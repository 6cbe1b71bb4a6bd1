"""Routes grouped by path. Parameters that all routes of a path share are declared on the path."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.openapi.route import STRING, Parameter, Route
from pilothouse.machinery.dataclass import dataclass

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
"""In the order of both documents."""


@dataclass(frozen=True, slots=True)
class PathRoutes:
    path: str
    routes: tuple[Route, ...]
    common: tuple[Parameter, ...]

    def own(self, route: Route) -> tuple[Parameter, ...]:
        """Return the parameters of a route that are not declared on the path."""
        known = {_key(parameter) for parameter in self.common}
        return _sorted(parameter for parameter in route.parameters if _key(parameter) not in known)


def by_path(routes: Iterable[Route]) -> list[PathRoutes]:
    found: dict[str, list[Route]] = {}
    for route in routes:
        found.setdefault(route.path, []).append(route)
    return [PathRoutes(path, _by_method(there), _common(there)) for path, there in sorted(found.items())]


def definitions_named(routes: Iterable[Route]) -> set[str]:
    """Return the definitions that the routes reference directly."""
    names: set[str] = set()
    for route in routes:
        names.update(route.responses.values())
        if route.body is not None:
            names.add(route.body.definition)
    return names - {STRING}


def _by_method(routes: list[Route]) -> tuple[Route, ...]:
    return tuple(sorted(routes, key=lambda route: _METHODS.index(route.method)))


def _common(routes: list[Route]) -> tuple[Parameter, ...]:
    everywhere = set.intersection(*({_key(parameter) for parameter in route.parameters} for route in routes))
    return _sorted(parameter for parameter in routes[-1].parameters if _key(parameter) in everywhere)


def _key(parameter: Parameter) -> tuple[str, str]:
    return parameter.name, parameter.location


def _sorted(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    return tuple(sorted(parameters, key=_key))
