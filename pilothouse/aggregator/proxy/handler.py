"""Serves the paths of one APIService: in this process, or through the service that it names."""

from __future__ import annotations

from collections.abc import Awaitable

from pilothouse.apiserver.http import Handler, Request, Response, text
from pilothouse.machinery.objects import Json


class ProxyHandler:
    """Is itself a handler. It can be updated while requests flow: each is served as was right when it came."""

    def __init__(self, local_delegate: Handler) -> None:
        self._local_delegate = local_delegate
        self._serve = local_delegate

    def update(self, api_service: Json) -> None:
        self._serve = self._local_delegate if api_service["spec"].get("service") is None else _unavailable

    def __call__(self, request: Request) -> Awaitable[Response]:
        return self._serve(request)


async def _unavailable(request: Request) -> Response:
    return text(503, "service unavailable\n", x_content_type_options="nosniff")
