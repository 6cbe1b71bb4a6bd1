"""The index at `/`: every listed path of the server and of the servers that it delegates to."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.apiserver.http import Handler, Request, Response, raw_json
from pilothouse.apiserver.server.mux import PathRecorderMux


def install_index(mux: PathRecorderMux, listed_paths: Callable[[], list[str]]) -> None:
    handler = index(listed_paths)
    mux.handle("/", handler, listed=False)
    mux.handle("/index.html", handler, listed=False)


def index(listed_paths: Callable[[], list[str]]) -> Handler:
    async def answer(request: Request) -> Response:
        return raw_json(200, {"paths": listed_paths()})

    return answer
