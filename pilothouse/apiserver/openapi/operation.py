"""The parts that both document versions share: routes grouped by path, media types, responses and operation ids.

Parameters that all routes of a path share are declared on the path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from pilothouse.apiserver.openapi.route import STRING, Parameter, Route
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

SECURITY: Json = {
    "BearerToken": {
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    }
}

_TEXTS = {200: "OK", 201: "Created", 202: "Accepted"}


@dataclass(frozen=True, slots=True)
class DescribedResponse:
    code: str
    description: str
    definition: str = ""
    """Empty for a response without a schema."""


def answers(route: Route) -> Iterator[DescribedResponse]:
    for code, definition in route.responses.items():
        yield DescribedResponse(str(code), _TEXTS[code], definition)
    yield DescribedResponse("401", "Unauthorized")


def extensions(route: Route) -> Json:
    out: Json = {}
    if route.action:
        out["x-kubernetes-action"] = route.action
    if route.kind is not None:
        kind = route.kind
        out["x-kubernetes-group-version-kind"] = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    return out


_VERBS = ("get", "log", "read", "replace", "patch", "delete", "watch", "connect", "proxy", "list", "create")


def operation_id(path: str, operation: str) -> str:
    """Return the operation id, unique over all groups: verb, group and version of the path, rest of the operation.

    /apis/apps/v1/namespaces/{namespace}/deployments + listNamespacedDeployment → listAppsV1NamespacedDeployment
    /api/v1/nodes/{name}                             + readNode                 → readCoreV1Node

    Raises ValueError for an operation that does not start with a verb.
    """
    verb = next((verb for verb in _VERBS if operation.startswith(verb)), None)
    if verb is None:
        raise ValueError(f"operation names start with a verb: {operation}")
    scope = "".join(identifier(part, capital=True) for part in _group_version(path))
    word = operation.removeprefix(verb)
    return verb + scope + (word[:1].upper() + word[1:])


def tags(path: str) -> list[str]:
    parts = _group_version(path)
    if parts:
        return ["_".join(identifier(part) for part in parts)]
    return [identifier(path.strip("/").split("/")[0])]


def _group_version(path: str) -> list[str]:
    parts = path.strip("/").split("/", 3)
    if parts[0] == "api":
        parts = ["apis", "core", *parts[1:]]
    if parts[0] != "apis" or len(parts) < 2:
        return []
    return [parts[1].removesuffix(".k8s.io"), *parts[2:3]]


@lru_cache(maxsize=256)
def identifier(text: str, *, capital: bool = False) -> str:
    """Remove characters that are invalid in identifiers, and capitalize the letters that follow them."""
    out = []
    for position, char in enumerate(text):
        if char.isalpha() or char == "_" or (position and char.isdigit()):
            out.append(char.upper() if capital else char)
            capital = False
        else:
            capital = True
    return "".join(out)


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
