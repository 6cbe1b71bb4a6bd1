"""The way of the server's own calls: its handler is given a Request, and its Response is read as it is.

Nothing is written as HTTP and read again, and a call has no task of its own: it runs in its caller's, and is cancelled
with it. A stream goes on when its reader asks for more of it, and is closed with the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from pilothouse.apiserver.http import Handler, Headers, Request, Response
from pilothouse.apiserver.serving.target import parse_target
from pilothouse.apiserver.streams import close_stream
from pilothouse.client.rest.errors import ConnectionFailed, RequestTimedOut
from pilothouse.client.rest.transport import HttpRequest
from pilothouse.machinery.errors import RequestEntityTooLarge
from pilothouse.machinery.event_loop import yield_to_loop


class HandlerTransport:
    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def send(self, request: HttpRequest) -> HandlerResponse:
        await yield_to_loop()  # whoever asks again and again, and never has to wait, leaves turns to others
        try:
            async with asyncio.timeout(request.timeout) as limit:
                response = await self._handler(_request(request))
        except TimeoutError:
            raise _timed_out(request) from None
        except Exception as error:
            raise ConnectionFailed("the server gave no answer") from error
        ends = limit.when()
        if limit.expired() or (
            ends is not None and asyncio.get_running_loop().time() >= ends
        ):  # the handler has a limit of its own, and answers when that is over
            raise _timed_out(request)
        return HandlerResponse(response)

    async def close(self) -> None:
        return


def _timed_out(request: HttpRequest) -> RequestTimedOut:
    return RequestTimedOut(f"no answer within {request.timeout} s")


def _request(request: HttpRequest) -> Request:
    target = parse_target(request.target.encode())
    body = request.body

    async def read_body(limit: int) -> bytes:
        if len(body) > limit:
            raise RequestEntityTooLarge.of(f"limit is {limit}")
        return body

    return Request(request.method, target.path, target.query_string, _headers(request), read_body)


def _headers(request: HttpRequest) -> Headers:
    named = [(name.lower().encode(), value.encode("latin-1")) for name, value in request.headers.items()]
    return [(b"host", b"localhost"), *named, (b"content-length", b"%d" % len(request.body))]


class HandlerResponse:
    def __init__(self, response: Response) -> None:
        self.status = response.status
        joined: dict[str, str] = {}
        for raw_name, raw_value in response.headers:
            name, value = raw_name.decode(), raw_value.decode("latin-1")
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
        self.headers = joined
        self._body = response.body

    async def read(self) -> bytes:
        if isinstance(self._body, bytes):
            return self._body
        return b"".join([chunk async for chunk in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        if isinstance(self._body, bytes):
            yield self._body
            return
        try:
            async for chunk in self._body:
                yield chunk
        except Exception as error:
            raise ConnectionFailed("the server ended its answer before it was complete") from error

    async def close(self) -> None:
        if not isinstance(self._body, bytes):
            await close_stream(self._body)
