"""The index at `/`: every listed path of the server and of the servers that it delegates to."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.server.mux import PathRecorderMux


def install_index(mux: PathRecorderMux, listed_paths: Callable[[], list[str]]) -> None:
    handler = index(listed_paths)
    mux.handle("/", handler, listed=False)
    mux.handle("/index.html", handler, listed=False)


def index(listed_paths: Callable[[], list[str]]) -> Handler:
    async def answer(request: Request) -> Response:
        return raw_json(200, {"paths": listed_paths()})

    return answer


def raw_json(status: int, value: object) -> Response:
    """Indented JSON without negotiation, as upstream writes what is no API object."""
    return Response(status, orjson.dumps(value, option=orjson.OPT_INDENT_2), [(b"content-type", b"application/json")])
