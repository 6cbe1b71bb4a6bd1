"""Installation of the profiling handlers, which are imported with the first request."""

from __future__ import annotations

from functools import cache

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.server.mux import PathRecorderMux

ROOT = "/debug/pprof"


def install_profiling(mux: PathRecorderMux) -> None:
    @cache
    def endpoints() -> Handler:
        from pilothouse.apiserver.profiling.endpoint import ProfilingEndpoints

        return ProfilingEndpoints()

    async def answer(request: Request) -> Response:
        return await endpoints()(request)

    mux.handle(ROOT, answer, listed=False)
    mux.handle_prefix(f"{ROOT}/", answer, listed=False)
