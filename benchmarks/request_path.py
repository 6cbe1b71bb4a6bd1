"""The cost of a request inside the server: every filter, endpoint, registry, cache and store, but no socket and no TLS.

request_path.py                    processor time with RBAC, fair queuing and admission, without, and the ratio
request_path.py --profile get      the load with all of them under cProfile, dearest functions first

Both servers run in this process, and their rounds take turns, so that what else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import itertools
import pstats
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import orjson
import uvloop

sys.path.insert(0, str(Path(__file__).parent))

from servers.bodies import config_map, pod
from servers.in_process import GUARDED, NAMESPACE, UNGUARDED, InProcess, in_process

ROUNDS, PARALLEL = 12, 32
CONFIG_MAPS, PODS, SECRETS = f"{NAMESPACE}/configmaps", f"{NAMESPACE}/pods", f"{NAMESPACE}/secrets"
COUNTS = {"get": 1920, "create": 640, "create repeated": 640, "create pod": 320, "create replica": 320}
COUNTS |= {"update": 640, "list": 20}
LISTED = 5000

Load = Callable[[int], Awaitable[None]]


class Loads:
    def __init__(self, server: InProcess) -> None:
        self._server = server
        self._numbers = itertools.count()

    async def prepare(self) -> None:
        await self._server.call("POST", CONFIG_MAPS, config_map("one"))
        for number in range(PARALLEL):
            await self._server.call("POST", CONFIG_MAPS, config_map(f"u{number}"))
        secret = orjson.dumps({"metadata": {"generateName": "s-"}, "stringData": {"k": "v" * 1500}})
        await _in_parallel(lambda _: self._server.call("POST", SECRETS, secret), LISTED)

    def named(self, name: str) -> Load:
        work = {
            "get": self._get,
            "create": self._create,
            "create repeated": self._create_repeated,
            "create pod": self._create_pod,
            "create replica": self._create_replica,
            "update": self._update,
            "list": self._list,
        }[name]
        return lambda count: _in_parallel(work, count)

    async def _get(self, _: int) -> None:
        await self._server.call("GET", f"{CONFIG_MAPS}/one")

    async def _create(self, _: int) -> None:
        await self._server.call("POST", CONFIG_MAPS, config_map(f"c{next(self._numbers)}"))

    async def _create_repeated(self, _: int) -> None:
        await self._server.call("POST", CONFIG_MAPS, config_map("c-", generate=True))

    async def _create_replica(self, _: int) -> None:
        await self._server.call("POST", PODS, pod("p-", generate=True))

    async def _create_pod(self, _: int) -> None:
        await self._server.call("POST", PODS, pod(f"p{next(self._numbers)}"))

    async def _update(self, number: int) -> None:
        name = f"u{number % PARALLEL}"
        body = config_map(name, size=1000 + next(self._numbers) % 97)
        await self._server.call("PUT", f"{CONFIG_MAPS}/{name}", body)

    async def _list(self, _: int) -> None:
        response = await self._server.call("GET", SECRETS)
        assert not isinstance(response.body, bytes)
        async for _chunk in response.body:
            pass


async def _in_parallel(work: Callable[[int], Coroutine[Any, Any, object]], count: int) -> None:
    """As from so many connections: each request is a task of its own."""

    async def worker(first: int) -> None:
        for number in range(first, count, PARALLEL):
            await asyncio.create_task(work(number))

    await asyncio.gather(*(worker(first) for first in range(PARALLEL)))


async def main(profiled: str, chosen: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as servers:
            guarded = Loads(await servers.enter_async_context(in_process(Path(folder, "a"), *GUARDED)))
            await guarded.prepare()
            if profiled:
                await profile(guarded.named(profiled), COUNTS[profiled])
                return
            unguarded = Loads(await servers.enter_async_context(in_process(Path(folder, "b"), *UNGUARDED)))
            await unguarded.prepare()
            print(f"{'µs of processor time':24} {'guarded':>9} {'unguarded':>9} {'ratio':>6}")
            for name in chosen:
                with_all, without = await best([guarded.named(name), unguarded.named(name)], COUNTS[name])
                print(f"{name:24} {with_all:9.1f} {without:9.1f} {with_all / without:6.2f}")


async def best(loads: list[Load], count: int) -> list[float]:
    rounds: list[list[float]] = [[] for _ in loads]
    for _ in range(ROUNDS):
        for load, times in zip(loads, rounds, strict=True):
            start = time.process_time()
            await load(count)
            times.append((time.process_time() - start) / count * 1e6)
    return [min(times) for times in rounds]


async def profile(load: Load, count: int) -> None:
    await load(count)
    profiler = cProfile.Profile()
    profiler.enable()
    await load(count)
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(60)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", choices=list(COUNTS), default="")
    parser.add_argument("loads", nargs="*", default=list(COUNTS))
    options = parser.parse_args()
    uvloop.run(main(options.profile, options.loads))
