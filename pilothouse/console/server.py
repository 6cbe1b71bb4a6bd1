"""The console's HTTP server, on loopback only: the page for whoever has a session, and the cluster behind it."""

from __future__ import annotations

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.insecure import insecure_endpoint
from pilothouse.apiserver.serving.server import Server
from pilothouse.client.config.model import ClientConfig
from pilothouse.console.guard import Guard
from pilothouse.console.page import Page, html
from pilothouse.console.passing_on import PassingOn, is_passed

_HOST = "127.0.0.1"
_OPENED = """<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/"><title>Console</title>
<link rel="icon" href="/icon.svg">"""
"""Not a redirect: what follows is then asked for by this page, wherever the link stood, and gets the cookie."""

_NO_SESSION = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Pilothouse console</title>
<h1>This address does not open the console</h1>
<p>The address that the console printed opens it once, in one browser. Start the console again for another:</p>
<pre>pilothouse console</pre></html>"""


class Console:
    """One page for one cluster, from `start` to `close`."""

    def __init__(self, config: ClientConfig, *, port: int = 0, page: Page | None = None) -> None:
        self._server = Server(self._answer, [insecure_endpoint(_HOST, port)])
        self._cluster = PassingOn(config)
        self._page = page or Page()
        self._guard: Guard

    async def start(self) -> str:
        """Return the address that opens it, once. Raises OSError where the port is taken."""
        await self._server.start()
        self._guard = Guard(self._server.port)
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
            return html(401, _NO_SESSION)
        return await self._cluster.answer(request) if is_passed(request.path) else self._page.answer(request)
