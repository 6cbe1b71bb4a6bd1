"""The loads. Each takes a target and returns its measurement; all of them run in a namespace of their own."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from servers.bodies import config_map, pod
from servers.connection import Connection
from servers.h2load import h2load
from servers.processes import processor_seconds
from servers.target import Target

NAMESPACE = "benchmark"
ROOT = f"/api/v1/namespaces/{NAMESPACE}"
CONFIG_MAPS, PODS = f"{ROOT}/configmaps", f"{ROOT}/pods"
_PARALLEL = 32
_NODES = 300


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of a load: preparation and clean-up are not part of it."""

    rate: float
    """Operations a second."""
    microseconds: float | None
    """Processor time of all processes of the server per operation; None for a server without known processes."""


class Meter:
    """Reads time and processor time of a server from its creation until `read`."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._used = self._processor_seconds()
        self._began = time.perf_counter()

    def read(self, operations: int, *, rate: float = 0.0) -> Measurement:
        """Return the measurement. `rate` is the load generator's own figure, if it has one."""
        seconds, used = time.perf_counter() - self._began, self._processor_seconds()
        microseconds = None if used is None or self._used is None else (used - self._used) / operations * 1e6
        return Measurement(rate or operations / seconds, microseconds)

    def _processor_seconds(self) -> float | None:
        if self._target.pid is None:
            return None
        return sum(map(processor_seconds, (self._target.pid, *self._target.others)))


@asynccontextmanager
async def namespace(target: Target) -> AsyncIterator[Connection]:
    """A fresh namespace, whose ConfigMaps go at the end. Pods can be made in it where nobody makes its account."""
    async with Connection(target) as connection:
        body = orjson.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        await connection.call("POST", "/api/v1/namespaces", body)
        account = orjson.dumps({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        await connection.call("POST", f"{ROOT}/serviceaccounts", account)
        await connection.call("DELETE", CONFIG_MAPS)
        yield connection
        await connection.call("DELETE", CONFIG_MAPS)


async def get_one(target: Target, *, requests: int, http1: bool) -> Measurement:
    async with namespace(target) as connection:
        await connection.call("POST", CONFIG_MAPS, config_map("one"))
        return await _h2load(target, f"{CONFIG_MAPS}/one", requests=requests, http1=http1)


async def create(target: Target, path: str, body: bytes, *, requests: int) -> Measurement:
    async with namespace(target):
        with tempfile.NamedTemporaryFile("wb") as file:
            file.write(body)
            file.flush()
            return await _h2load(target, path, requests=requests, body=Path(file.name))


async def _h2load(
    target: Target, path: str, *, requests: int, clients: int = 32, body: Path | None = None, http1: bool = False
) -> Measurement:
    meter = Meter(target)
    load = await asyncio.to_thread(h2load, target, path, requests=requests, clients=clients, body=body, http1=http1)
    return meter.read(requests, rate=load.requests_per_second)


async def update(target: Target, *, requests: int) -> Measurement:
    """Each connection replaces an object of its own, again and again."""
    async with namespace(target) as connection:
        for i in range(_PARALLEL):
            await connection.call("POST", CONFIG_MAPS, config_map(f"u{i}"))

        async def put(connection: Connection, i: int) -> None:
            name = f"u{i % _PARALLEL}"
            new = config_map(name, size=1000 + i // _PARALLEL % 7)
            answer = await connection.call("PUT", f"{CONFIG_MAPS}/{name}", new)
            assert answer.status == 200, answer

        meter = Meter(target)
        await in_parallel(target, requests, put, parallel=_PARALLEL)
        return meter.read(requests)


async def fill_with_pods(target: Target, *, upto: int) -> None:
    """Makes pods, each bound to one of some nodes, until there are that many."""
    async with namespace(target) as connection:
        page = (await connection.call("GET", f"{PODS}?limit=1")).json()
        there = len(page["items"]) + page["metadata"].get("remainingItemCount", 0)

        async def make(connection: Connection, i: int) -> None:
            answer = await connection.call("POST", PODS, pod("p-", generate=True, node=f"node-{i % _NODES}"))
            assert answer.status == 201, answer

        await in_parallel(target, upto - there, make, parallel=_PARALLEL)


async def list_pods(target: Target, *, requests: int, clients: int = 2, query: str = "") -> Measurement:
    return await _h2load(target, PODS + query, requests=requests, clients=clients, http1=True)


async def list_once(target: Target, query: str) -> float:
    """Milliseconds of one list."""
    async with Connection(target) as connection:
        await connection.call("GET", "/version")
        start = time.perf_counter()
        await connection.call("GET", PODS + query)
        return (time.perf_counter() - start) * 1000


async def watch_fan_out(target: Target, *, watchers: int, events: int) -> Measurement:
    """Delivered events, over all watchers together. The processor time includes the writes."""
    async with namespace(target) as connection:
        connecting = asyncio.Semaphore(_PARALLEL)
        seen = [asyncio.create_task(_watch(target, events, connecting)) for _ in range(watchers)]
        await _wait_for_watchers(connection, watchers)
        meter = Meter(target)
        for i in range(events):
            await connection.call("POST", CONFIG_MAPS, config_map(f"w{i}"))
        await asyncio.gather(*seen)
        return meter.read(watchers * events)


async def _watch(target: Target, events: int, connecting: asyncio.Semaphore) -> None:
    async with AsyncExitStack() as stack:
        async with connecting:
            connection = await stack.enter_async_context(Connection(target))
        found = 0
        async for chunk in connection.stream(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1200"):
            found += chunk.count(b'"type":"ADDED"')
            if found >= events:
                return


async def _wait_for_watchers(connection: Connection, watchers: int) -> None:
    """The server counts its watches; without that metric a moment has to do."""
    for _ in range(600):
        text = (await connection.call("GET", "/metrics")).body.decode()
        lines = [line for line in text.splitlines() if line.startswith("apiserver_longrunning_requests{")]
        if sum(float(line.rsplit(" ", 1)[1]) for line in lines if '"configmaps"' in line) >= watchers:
            return
        await asyncio.sleep(0.1)


async def in_parallel(
    target: Target, requests: int, work: Callable[[Connection, int], Awaitable[None]], *, parallel: int
) -> float:
    """Requests a second over some connections that share the numbers from 0 up."""

    async def run(worker: int) -> None:
        async with Connection(target) as connection:
            for i in range(worker, requests, parallel):
                await work(connection, i)

    start = time.perf_counter()
    await asyncio.gather(*(run(worker) for worker in range(parallel)))
    return requests / (time.perf_counter() - start)
