"""Construction of clients, from a configuration or for an ASGI app in the same process.

AsgiTransport runs the app in its own task, with back-pressure when the response is not read. Closing an incomplete
response sends `http.disconnect` to the app and cancels its task.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.config.model import ClientConfig
from pilothouse.client.flowcontrol import TokenBucket
from pilothouse.client.rest.client import Client, WarningHandler
from pilothouse.client.rest.errors import ConnectionFailed, RequestTimedOut
from pilothouse.client.rest.transport import HttpRequest


def connect(config: ClientConfig, *, clock: Clock = REAL_CLOCK) -> Client:
    """Return a client over HTTP or HTTPS. No connection is opened before the first request.

    >>> from pilothouse.client import connect
    >>> async with connect(api.config()) as client:
    ...     print((await client.resource("v1", "namespaces").get("default"))["kind"])
    Namespace
    """
    from pilothouse.client.rest.http_transport import HttpTransport

    return Client(
        HttpTransport(config, clock),
        rate_limiter=TokenBucket(config.qps, config.burst, clock) if config.qps > 0 else None,
        user_agent=config.user_agent,
        timeout=config.timeout,
        clock=clock,
        host=urlsplit(config.host).netloc,
    )


def loopback(
    app: AsgiApp,
    *,
    headers: Mapping[str, str] | None = None,
    state: Mapping[str, Any] | None = None,
    user_agent: str = "pilothouse-loopback",
    on_warning: WarningHandler | None = None,
    clock: Clock = REAL_CLOCK,
    host: str = "localhost",
) -> Client:
    """Return a client that calls an ASGI app.

    The client has no rate limit: the called server controls its own load. `host` labels the request metrics.
    """
    transport = AsgiTransport(app, headers=headers, state=state)
    return Client(transport, user_agent=user_agent, on_warning=on_warning, clock=clock, host=host)


Message: TypeAlias = MutableMapping[str, Any]
AsgiApp: TypeAlias = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]

_CHUNKS_IN_FLIGHT = 16


class AsgiTransport:
    """Calls the app. `state` becomes the scope's state, which identifies in-process callers to the server."""

    def __init__(
        self, app: AsgiApp, *, headers: Mapping[str, str] | None = None, state: Mapping[str, Any] | None = None
    ) -> None:
        self._app = app
        self._headers = dict(headers or {})
        self._state = dict(state or {})

    async def send(self, request: HttpRequest) -> AsgiResponse:
        exchange = self._call(request)
        try:
            async with asyncio.timeout(request.timeout):
                await exchange.started()
        except TimeoutError:
            await exchange.close()
            raise RequestTimedOut(f"no answer within {request.timeout} s") from None
        except BaseException:
            await exchange.close()
            raise
        return exchange

    async def close(self) -> None:
        return

    def _call(self, request: HttpRequest) -> AsgiResponse:
        """Call the app; overridden to call it in another context."""
        return AsgiResponse(self._app, self._scope(request), request.body)

    def _scope(self, request: HttpRequest) -> MutableMapping[str, Any]:
        path, _, query = request.target.partition("?")
        headers = {"host": "localhost", **self._headers, **request.headers, "content-length": str(len(request.body))}
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "https",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
            "client": None,
            "server": ("localhost", None),
            "state": dict(self._state),
        }


class AsgiResponse:
    """Request to the app and its response."""

    def __init__(self, app: AsgiApp, scope: MutableMapping[str, Any], body: bytes) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._request_body: bytes | None = body
        self._gone = asyncio.Event()
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._body: asyncio.Queue[bytes | None] = asyncio.Queue(_CHUNKS_IN_FLIGHT)  # None marks the end
        self._complete = False
        self._error: Exception | None = None
        self._task = asyncio.ensure_future(self._run(app, scope))

    async def started(self) -> None:
        await asyncio.shield(self._started)

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        while (chunk := await self._body.get()) is not None:
            yield chunk
        if not self._complete:
            raise ConnectionFailed("the app ended its answer before it was complete") from self._error

    async def close(self) -> None:
        self._gone.set()
        while not self._body.empty():
            self._body.get_nowait()  # unread; the app may wait for space to finish
        self._task.cancel()
        await asyncio.wait({self._task})
        if self._started.done() and not self._started.cancelled():
            self._started.exception()

    async def _run(self, app: AsgiApp, scope: MutableMapping[str, Any]) -> None:
        try:
            await app(scope, self._receive, self._send)
        except Exception as error:
            self._error = error
        if not self._started.done():
            failure = ConnectionFailed("the app gave no answer")
            failure.__cause__ = self._error
            self._started.set_exception(failure)
        await self._body.put(None)

    async def _receive(self) -> Message:
        if self._request_body is not None:
            body, self._request_body = self._request_body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if self._gone.is_set():
            raise OSError("the client has gone")
        if message["type"] == "http.response.start":
            self.status = message["status"]
            for raw_name, raw_value in message.get("headers") or ():
                name, value = bytes(raw_name).decode().lower(), bytes(raw_value).decode("latin-1")
                self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
            self._started.set_result(None)
        elif message["type"] == "http.response.body":
            if body := message.get("body"):
                await self._body.put(bytes(body))
            if not message.get("more_body"):
                self._complete = True
                self._gone.set()
