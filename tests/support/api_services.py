"""APIServices as the aggregator's parts are told of them, and the answers that servers behind them can give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from pilothouse.apiserver import Request, Response
from pilothouse.client import Json

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def api_service(group: str, version: str = "v1", **spec: Any) -> Json:
    """One whose Service is called as the group's first part, unless the spec says something else."""
    whole = {
        "group": group,
        "version": version,
        "groupPriorityMinimum": 1000,
        "versionPriority": 15,
        "service": {"namespace": "default", "name": group.partition(".")[0], "port": 443},
    }
    return {"metadata": {"name": f"{version}.{group}"}, "spec": whole | spec}


class RemoteServer:
    """A handler that answers what a test wants, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[Request], Response]] = {}
        self.asked: list[str] = []
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> Response:
        self.asked.append(request.path)
        self.requests.append(request)
        answer = self.answers.get(request.path)
        return answer(request) if answer else Response(404, b"404 page not found\n")

    def serve(self, path: str, document: Any, *, media_type: str = "application/json", etag: str = "") -> None:
        body = document if isinstance(document, bytes) else orjson.dumps(document)

        def answer(request: Request) -> Response:
            if etag and request.header(b"if-none-match") == etag:
                return Response(304)
            headers = [(b"content-type", media_type.encode()), (b"etag", etag.encode())]
            return Response(200, body, headers)

        self.answers[path] = answer

    def fail(self, path: str, status: int = 503) -> None:
        self.answers[path] = lambda request: Response(status, b"no\n")

    def serve_groups(self, *groups: Json, etag: str = "") -> None:
        self.serve("/apis", {"kind": "APIGroupDiscoveryList", "items": list(groups)}, media_type=AGGREGATED, etag=etag)


def group(name: str, **versions: list[str]) -> Json:
    """A group of an aggregated document: its versions, with the names of their resources."""
    shown = [{"version": each, "resources": [_resource(plural) for plural in versions[each]]} for each in versions]
    return {"metadata": {"name": name}, "versions": shown}


def _resource(plural: str) -> Json:
    kind = {"group": "", "version": "", "kind": plural.removesuffix("s").title()}
    return {"resource": plural, "responseKind": kind, "scope": "Namespaced", "singularResource": "", "verbs": ["get"]}
