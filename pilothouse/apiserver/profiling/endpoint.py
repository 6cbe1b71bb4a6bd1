"""The handlers below /debug/pprof. What takes time is bounded: in seconds, and to one such request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager

from pilothouse.apiserver.http import NO_SNIFFING, Handler, Headers, Request, Response
from pilothouse.apiserver.profiling.cpu import cpu_profile
from pilothouse.apiserver.profiling.index import index_page
from pilothouse.apiserver.profiling.install import ROOT
from pilothouse.apiserver.profiling.profile import Profile
from pilothouse.apiserver.profiling.snapshots import SNAPSHOTS, Take, full_dump

_MOST_SECONDS = 300
_USUAL_SECONDS = 30
_TOO_LONG = "profile duration exceeds server's WriteTimeout"
_EMPTY_TEXTS = {
    "block": "--- contention:\ncycles/second=1000000000\n",
    "mutex": "--- mutex:\ncycles/second=1000000000\nsampling period=0\n",
}


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ProfilingEndpoints:
    def __init__(self) -> None:
        self._busy = False
        self._handlers: dict[str, Handler] = {"profile": self.cpu, "symbol": _symbol, "trace": _trace}

    def __call__(self, request: Request) -> Awaitable[Response]:
        if request.path == ROOT:
            return _redirected(request)
        return self._handlers.get(request.path.removeprefix(f"{ROOT}/"), self.named)(request)

    async def named(self, request: Request) -> Response:
        name = request.path.removeprefix(f"{ROOT}/")
        if not name:
            return Response(200, await index_page(), [(b"content-type", b"text/html; charset=utf-8"), NO_SNIFFING])
        take = SNAPSHOTS.get(name)
        if take is None:
            return _error(404, "Unknown profile")
        try:
            debug = _number(request.param("debug"))
            if request.param("seconds"):
                return await _download(await self._delta(request.param("seconds"), debug, take), f"{name}-delta")
            if not debug:
                return await _download(await take(), name)
            return _text(await _written(name, debug, take))
        except _Refused as refused:
            return _error(refused.status, str(refused))

    async def cpu(self, request: Request) -> Response:
        """One at a time, as in Go: two would count each other."""
        seconds = _number(request.param("seconds"))
        seconds = seconds if seconds > 0 else _USUAL_SECONDS
        if seconds > _MOST_SECONDS:
            return _error(400, _TOO_LONG)
        try:
            with self._alone("Could not enable CPU profiling: cpu profiling already in use"):
                profile = await cpu_profile(seconds)
        except _Refused as refused:
            return _error(refused.status, str(refused))
        return await _download(profile, "profile")

    async def _delta(self, asked: str, debug: int, take: Take) -> Profile:
        seconds = _number(asked)
        if seconds <= 0:
            raise _Refused(400, 'invalid value for "seconds" - must be a positive integer')
        if seconds > _MOST_SECONDS:
            raise _Refused(400, _TOO_LONG)
        if debug:
            raise _Refused(400, "seconds and debug params are incompatible")
        with self._alone("failed to collect profile: another one is being collected"):
            before = await take()
            await asyncio.sleep(seconds)
            return (await take()).since(before)

    @contextmanager
    def _alone(self, otherwise: str) -> Iterator[None]:
        if self._busy:
            raise _Refused(500, otherwise)
        self._busy = True
        try:
            yield
        finally:
            self._busy = False


async def _written(name: str, debug: int, take: Take) -> str:
    if name in _EMPTY_TEXTS:
        return _EMPTY_TEXTS[name]
    if name == "goroutine" and debug >= 2:
        return await full_dump()
    return await asyncio.to_thread((await take()).text, name)


async def _redirected(request: Request) -> Response:
    body = f'<a href="{ROOT}/">Found</a>.\n\n'.encode()
    return Response(302, body, [(b"location", f"{ROOT}/".encode()), (b"content-type", b"text/html; charset=utf-8")])


async def _symbol(request: Request) -> Response:
    """Places in a profile come with their names, so that nobody has to ask for any."""
    return _text("num_symbols: 1\n")


async def _trace(request: Request) -> Response:
    return _error(500, "Could not enable tracing: there is no Go runtime to trace")


def _number(text: str) -> int:
    """0 for what is no number."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0


def _text(body: str) -> Response:
    return Response(200, body.encode(), [(b"content-type", b"text/plain; charset=utf-8"), NO_SNIFFING])


def _error(status: int, message: str) -> Response:
    headers: Headers = [(b"content-type", b"text/plain; charset=utf-8"), NO_SNIFFING, (b"x-go-pprof", b"1")]
    return Response(status, f"{message}\n".encode(), headers)


async def _download(profile: Profile, name: str) -> Response:
    headers: Headers = [(b"content-type", b"application/octet-stream"), NO_SNIFFING]
    headers.append((b"content-disposition", f'attachment; filename="{name}"'.encode()))
    return Response(200, await asyncio.to_thread(profile.encode), headers)
