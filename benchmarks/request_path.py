"""What a request costs inside the server: every filter, endpoint, registry, cache and store, but no socket and no TLS.

request_path.py                    processor time of a GET, a create and an update, best of several rounds
request_path.py --profile get      the same under cProfile, dearest functions first
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from in_process import CONFIG_MAPS, InProcessServer, in_process_server

ROUNDS, PARALLEL = 12, 32
VALUE = "v" * 1000

Load = Callable[[int], Awaitable[None]]


class Loads:
    def __init__(self, server: InProcessServer) -> None:
        self._server = server
        self._created = 0

    async def get(self, count: int) -> None:
        for _ in range(count):
            await self._server.open("GET", f"{CONFIG_MAPS}/one")

    async def create(self, count: int) -> None:
        await self._in_parallel(self._create, count)

    async def update(self, count: int) -> None:
        await self._in_parallel(self._update, count)

    async def _create(self, _: int) -> None:
        self._created += 1
        await self._write("POST", CONFIG_MAPS, f"c{self._created}", VALUE)

    async def _update(self, number: int) -> None:
        self._created += 1
        name = f"u{number % PARALLEL}"
        await self._write("PUT", f"{CONFIG_MAPS}/{name}", name, f"{VALUE}{self._created}")

    async def _write(self, method: str, path: str, name: str, value: str) -> None:
        body = f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"k":"{value}"}}}}'
        answer = await self._server.open(method, path, body.encode())
        assert answer.status in (200, 201), answer.body

    async def _in_parallel(self, work: Callable[[int], Awaitable[None]], count: int) -> None:
        async def worker(first: int) -> None:
            for number in range(first, count, PARALLEL):
                await work(number)

        await asyncio.gather(*(worker(first) for first in range(PARALLEL)))


async def main(profiled: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with in_process_server(Path(folder)) as server:
            await server.create("one", data={"k": VALUE})
            for number in range(PARALLEL):
                await server.create(f"u{number}")
            loads = Loads(server)
            chosen: dict[str, tuple[Load, int]] = {
                "get": (loads.get, 2000),
                "create": (loads.create, 960),
                "update": (loads.update, 960),
            }
            if profiled:
                await profile(*chosen[profiled])
                return
            for name, (load, count) in chosen.items():
                print(f"{name:8} {await best(load, count):6.1f} µs of processor time")


async def best(load: Load, count: int) -> float:
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        await load(count)
        rounds.append((time.process_time() - start) / count * 1e6)
    return min(rounds)


async def profile(load: Load, count: int) -> None:
    await load(count)
    profiler = cProfile.Profile()
    profiler.enable()
    await load(count)
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", choices=["get", "create", "update"], default="")
    uvloop.run(main(parser.parse_args().profile))
