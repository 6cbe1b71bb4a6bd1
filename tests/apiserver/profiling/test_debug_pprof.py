"""/debug/pprof: what it answers, and that it is bounded."""

from __future__ import annotations

import asyncio
import gzip
import threading

import pytest
from patience import PATIENCE

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.profiling.install import install_profiling
from pilothouse.apiserver.profiling.profile import Frame, Profile
from pilothouse.apiserver.server.mux import PathRecorderMux
from pilothouse.apiserver.server.server import GenericAPIServer

PLAIN = "text/plain; charset=utf-8"


async def not_found(request: Request) -> Response:
    return Response(404)


@pytest.fixture
def mux() -> PathRecorderMux:
    mux = PathRecorderMux("test", not_found)
    install_profiling(mux)
    return mux


async def get(mux: PathRecorderMux, target: str) -> Response:
    path, _, query = target.partition("?")

    async def no_body(limit: int) -> bytes:
        return b""

    return await mux(Request("GET", f"/debug/pprof{path}", query, [], no_body))


def head(response: Response) -> tuple[int, str]:
    return response.status, dict(response.headers)[b"content-type"].decode()


def body(response: Response) -> bytes:
    assert isinstance(response.body, bytes)
    return response.body


@pytest.mark.parametrize(
    ("target", "status", "text"),
    [
        ("/cmdline", 404, "Unknown profile\n"),
        ("/heap?seconds=x", 400, 'invalid value for "seconds" - must be a positive integer\n'),
        ("/heap?seconds=0", 400, 'invalid value for "seconds" - must be a positive integer\n'),
        ("/heap?seconds=1&debug=1", 400, "seconds and debug params are incompatible\n"),
        ("/heap?seconds=301", 400, "profile duration exceeds server's WriteTimeout\n"),
        ("/profile?seconds=301", 400, "profile duration exceeds server's WriteTimeout\n"),
        ("/trace", 500, "Could not enable tracing: there is no Go runtime to trace\n"),
        ("/symbol", 200, "num_symbols: 1\n"),
        ("/goroutineleak?debug=1", 200, "goroutineleak profile: total 0\n"),
        ("/block?debug=1", 200, "--- contention:\ncycles/second=1000000000\n"),
        ("/mutex?debug=1", 200, "--- mutex:\ncycles/second=1000000000\nsampling period=0\n"),
    ],
)
async def test_answers_are_upstreams(mux: PathRecorderMux, target: str, status: int, text: str) -> None:
    answer = await get(mux, target)
    assert (*head(answer), body(answer).decode()) == (status, PLAIN, text)
    assert (b"x-go-pprof" in dict(answer.headers)) == (status != 200)


async def test_the_root_leads_to_the_list_of_profiles(mux: PathRecorderMux) -> None:
    assert dict((await get(mux, "")).headers)[b"location"] == b"/debug/pprof/"
    page = await get(mux, "/")
    assert head(page) == (200, "text/html; charset=utf-8")
    assert b"<td><a href='goroutineleak?debug=1'>goroutineleak</a></td></tr>\n" in body(page)
    assert b"<tr><td>0</td><td><a href='mutex?debug=1'>mutex</a></td></tr>\n" in body(page)


@pytest.mark.parametrize("name", ["allocs", "block", "goroutine", "goroutineleak", "heap", "mutex", "threadcreate"])
async def test_a_profile_is_a_file_of_gzipped_protobuf(mux: PathRecorderMux, name: str) -> None:
    answer = await get(mux, f"/{name}")
    assert head(answer) == (200, "application/octet-stream")
    assert dict(answer.headers)[b"content-disposition"].decode() == f'attachment; filename="{name}"'
    assert gzip.decompress(body(answer)).startswith(b"\x0a\x04\x08\x01\x10\x02")


async def test_tasks_are_shown_with_what_they_await(mux: PathRecorderMux) -> None:
    async def sleeper() -> None:
        await asyncio.sleep(60)

    task = asyncio.create_task(sleeper())
    await asyncio.sleep(0)
    shown = body(await get(mux, "/goroutine?debug=1")).decode()
    dumped = body(await get(mux, "/goroutine?debug=2")).decode()
    task.cancel()
    assert ".<locals>.sleeper\t" in shown
    assert f"goroutine {task.get_name()} [await]:\nsleep(...)\n" in dumped


async def test_the_time_of_threads_is_counted_where_it_is_used(mux: PathRecorderMux) -> None:
    stop = threading.Event()

    def burn_time() -> None:
        while not stop.is_set():
            sum(range(100))

    threading.Thread(target=burn_time).start()
    recording = asyncio.create_task(get(mux, "/profile?seconds=1"))
    await asyncio.sleep(0)
    refused = await get(mux, "/profile?seconds=1")
    answer = await recording
    stop.set()
    assert body(refused) == b"Could not enable CPU profiling: cpu profiling already in use\n"
    assert head(answer) == (200, "application/octet-stream")
    assert b"burn_time" in gzip.decompress(body(answer))


async def test_who_goes_away_ends_the_recording(mux: PathRecorderMux) -> None:
    recording = asyncio.create_task(get(mux, "/profile?seconds=60"))
    await asyncio.sleep(0)
    profiler = next(thread for thread in threading.enumerate() if thread.name == "cpu-profile")
    recording.cancel()
    await asyncio.gather(recording, return_exceptions=True)
    profiler.join(PATIENCE)
    assert not profiler.is_alive()
    assert (await get(mux, "/heap?seconds=x")).status == 400


def test_a_change_is_what_was_added_and_what_went() -> None:
    kinds = (("objects", "count"),)
    first, second = (Frame("f", "f.py", 1),), (Frame("g", "g.py", 2),)
    before = Profile(kinds, {first: (3,), second: (1,)}, kinds[0], 1, 100)
    after = Profile(kinds, {first: (5,), second: (1,)}, kinds[0], 1, 250)
    change = after.since(before)
    assert (change.samples, change.duration_ns) == ({first: (2,)}, 150)


@pytest.mark.parametrize("profiling", [True, False])
async def test_a_server_without_profiling_has_none_of_it(profiling: bool) -> None:
    server = GenericAPIServer("mine", not_found)
    server.prepare_run(profiling=profiling)
    assert ((await get(server.mux, "/symbol")).status == 200) == profiling
