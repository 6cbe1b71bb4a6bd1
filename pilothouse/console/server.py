"""The HTTP server of the console, on loopback only."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.server import Server, insecure_endpoint
from pilothouse.client.config.model import ClientConfig
from pilothouse.console import metrics, streams
from pilothouse.console.forwarding import ClusterForwarder, is_forwarded
from pilothouse.console.guard import Guard, session_secret
from pilothouse.console.page import Page, html

_HOST = "127.0.0.1"
_OPENED = """<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/"><title>Console</title>
<link rel="icon" href="/icon.svg">"""
"""Not a redirect: the follow-up request must come from this page, so that the SameSite cookie is sent."""

_NO_SESSION = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Pilothouse console</title>
<h1>This address does not open the console</h1>
<p>The address that the console printed opens it once, in one browser. Start the console again for another:</p>
<pre>pilothouse console</pre></html>"""


class Console:
    """A console for one cluster, from `start` to `close`."""

    def __init__(self, config: ClientConfig, *, port: int = 0, page: Page | None = None) -> None:
        self._server = Server(self._answer, [insecure_endpoint(_HOST, port)])
        self._cluster = ClusterForwarder(config)
        self._metrics = metrics.ClusterMetrics(self._cluster.transport)
        self._secret = session_secret(config)
        self._page = page or Page()
        self._guard: Guard

    async def start(self) -> str:
        """Start the server, and return its one-time URL. Raises OSError if the port is in use."""
        await self._server.start()
        self._guard = Guard(self._server.port, self._secret)
        return f"http://{_HOST}:{self._server.port}/?token={self._guard.token}"

    async def close(self) -> None:
        await self._server.abort()
        await self._cluster.close()

    async def _answer(self, request: Request) -> Response:
        refusal = self._guard.refusal(request)
        if refusal is not None:
            return refusal
        if request.path == "/" and request.param("token"):
            cookie = self._guard.exchange(request.param("token"))
            if cookie is not None:
                return html(200, _OPENED).with_header(b"set-cookie", cookie.encode())
            return html(200, _OPENED) if self._guard.has_session(request) else html(401, _NO_SESSION)
        if not self._guard.has_session(request):
            return html(401, _NO_SESSION).with_header(b"x-console-session", b"none")
        if request.path == streams.PATH:
            return streams.multiplexed(request, self._cluster.transport)
        if request.path == metrics.PATH:
            return await self._cluster.reachable(self._metrics.answer())
        return await self._cluster.answer(request) if is_forwarded(request.path) else self._page.answer(request)


def start_in_background(config: ClientConfig, *, port: int = 0) -> str:
    """Start a console in a daemon thread, and return its URL. Raises OSError if the port is in use."""
    address: Future[str] = Future()
    threading.Thread(target=lambda: asyncio.run(_serve(config, port, address)), name="console", daemon=True).start()
    return address.result()


async def _serve(config: ClientConfig, port: int, address: Future[str]) -> None:
    try:
        address.set_result(await Console(config, port=port).start())
    except OSError as error:
        address.set_exception(error)
        return
    await asyncio.Event().wait()
