"""The parts of an operation that are the same in both document versions."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.apiserver.openapi.route import Route
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
    """Empty where the answer has no schema."""


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
