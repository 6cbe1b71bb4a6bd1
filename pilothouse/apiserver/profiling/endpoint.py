"""The handlers below /debug/pprof. Long profiles are bounded in seconds and run one at a time."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager

from pilothouse.apiserver.http import NO_SNIFFING, Handler, Headers, Request, Response
from pilothouse.apiserver.profiling.cpu import cpu_profile
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
        """Profile the CPU. As in Go, a second concurrent profile is rejected: each would count the other."""
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
    """Profiles contain symbol names, so clients need no lookups."""
    return _text("num_symbols: 1\n")


async def _trace(request: Request) -> Response:
    return _error(500, "Could not enable tracing: there is no Go runtime to trace")


def _number(text: str) -> int:
    """Parse a number; invalid text is 0."""
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


_STACKS = "Use debug=2 as a query parameter to export in the same format as an unrecovered panic."
_FILE = (
    "You can specify the duration in the seconds GET parameter. "
    "After you get the {0} file, use the go tool {1} command to investigate the {0}."
)
_MEANINGS = {
    "allocs": "A sampling of all past memory allocations",
    "block": "Stack traces that led to blocking on synchronization primitives",
    "cmdline": "The command line invocation of the current program",
    "goroutine": f"Stack traces of all current goroutines. {_STACKS}",
    "goroutineleak": f"Stack traces of all leaked goroutines. {_STACKS}",
    "heap": "A sampling of memory allocations of live objects. "
    "You can specify the gc GET parameter to run GC before taking the heap sample.",
    "mutex": "Stack traces of holders of contended mutexes",
    "profile": f"CPU profile. {_FILE.format('profile', 'pprof')}",
    "symbol": "Maps given program counters to function names. "
    "Counters can be specified in a GET raw query or POST body, multiple counters are separated by '+'.",
    "threadcreate": "Stack traces that led to the creation of new OS threads",
    "trace": f"A trace of execution of the current program. {_FILE.format('trace', 'trace')}",
}
_HEAD = """<html>
<head>
<title>/debug/pprof/</title>
<style>
.profile-name{
	display:inline-block;
	width:6rem;
}
</style>
</head>
<body>
/debug/pprof/
<br>
<p>Set debug=1 as a query parameter to export in legacy text format</p>
<br>
Types of profiles available:
<table>
<thead><td>Count</td><td>Profile</td></thead>
"""
_BETWEEN = """</table>
<a href="goroutine?debug=2">full goroutine stack dump</a>
<br>
<p>
Profile Descriptions:
<ul>
"""


async def index_page() -> bytes:
    counts = {name: await _count(name) for name in _MEANINGS}
    rows = [f"<tr><td>{counts[name]}</td><td><a href='{name}?debug=1'>{name}</a></td></tr>\n" for name in _MEANINGS]
    meanings = [
        f"<li><div class=profile-name>{name}: </div> {html.escape(meaning)}</li>\n"
        for name, meaning in _MEANINGS.items()
    ]
    page = [_HEAD, *rows, _BETWEEN, *meanings, "</ul>\n</p>\n</body>\n</html>"]
    return "".join(page).replace("&#x27;", "&#39;").encode()


async def _count(name: str) -> int:
    """Return the number of stacks in a profile; for memory profiles, the number of allocation sites."""
    if name not in SNAPSHOTS:
        return 0
    profile = await SNAPSHOTS[name]()
    if name in ("allocs", "heap"):
        return len(profile.samples)
    return sum(values[0] for values in profile.samples.values())
