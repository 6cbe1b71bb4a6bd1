"""An HTTP proxy that gets in the way: it refuses requests, cuts answers, injects errors and repeats bookmarks.

Faults come in rotation, so that a run of any length has some of each. Everything it passes on, it passes on in order.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import orjson
from aiohttp import web

from pilothouse.machinery.objects import Json

BEFORE = ("", "429", "", "500", "", "410", "", "503 with Retry-After", "", "cut before")
WITHIN = ("cut", "error event 410", "end", "cut", "error event 500")
LINES = (60, 180, 300, 500)


class FaultyProxy:
    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._before = itertools.cycle(BEFORE)
        self._within = itertools.cycle(WITHIN)
        self._lines = itertools.cycle(LINES)
        self.active = True
        self.seen: Counter[str] = Counter()
        self.url = ""

    @asynccontextmanager
    async def run(self) -> AsyncIterator[FaultyProxy]:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._handle)
        runner = web.AppRunner(app, shutdown_timeout=0.01, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), read_bufsize=1 << 18
        ) as self._session:
            try:
                yield self
            finally:
                await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        fault = next(self._before) if self.active else ""
        if fault == "410" and request.query.get("watch") != "true":
            fault = "429"  # a list is told 410 by its continue token only
        if fault:
            self.seen[fault] += 1
            return _cut(request) if fault == "cut before" else _refusal(fault)
        try:
            return await self._forward(request)
        except aiohttp.ClientError:  # the server is away, or went away
            self.seen["server away"] += 1
            return _cut(request)

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(self._upstream + request.path_qs, timeout=timeout) as answer:
            response = web.StreamResponse(status=answer.status, headers={"content-type": "application/json"})
            await response.prepare(request)
            try:
                if request.query.get("watch") == "true" and answer.status == 200:
                    await self._watch(request, answer, response)
                else:
                    await response.write(await answer.read())
            except ConnectionError:  # the client went away
                pass
            return response

    async def _watch(self, request: web.Request, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        left = next(self._lines)
        ordered = request.query.get("sendInitialEvents") != "true"
        rest = b""
        async for chunk in answer.content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            ordered = ordered or any(b"initial-events-end" in line for line in lines)
            await response.write(b"".join(line + b"\n" for line in lines))
            left -= len(lines)
            if self.active and lines and ordered and not lines[-1].startswith(b'{"type":"ERROR"'):
                await self._repeat_bookmark(lines[-1], response)
                if left <= 0:
                    return await self._end(request, rest or lines[-1], response)
        return None

    async def _repeat_bookmark(self, line: bytes, response: web.StreamResponse) -> None:
        """A bookmark says how far the stream has come, which is true of the event that was sent last."""
        version = orjson.loads(line)["object"]["metadata"]["resourceVersion"]
        bookmark = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": version}}
        self.seen["bookmarks repeated"] += 1
        for _ in range(2):
            await response.write(_event("BOOKMARK", bookmark))

    async def _end(self, request: web.Request, line: bytes, response: web.StreamResponse) -> None:
        fault = next(self._within)
        self.seen[fault] += 1
        if fault == "cut":
            await response.write(line[: len(line) // 2])
            _abort(request)
        elif fault != "end":
            code = int(fault.split()[-1])
            await response.write(_event("ERROR", _status(code)))


def _event(type_: str, obj: Json) -> bytes:
    return orjson.dumps({"type": type_, "object": obj}) + b"\n"


def _status(code: int) -> Json:
    reason = {410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}[code]
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": "fire",
    }


def _refusal(fault: str) -> web.Response:
    code = int(fault.split()[0])
    headers = {"Retry-After": "0"} if "Retry-After" in fault else {}
    return web.json_response(_status(code), status=code, headers=headers)


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _cut(request: web.Request) -> web.Response:
    _abort(request)
    return web.Response(status=500)
