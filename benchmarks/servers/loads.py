"""The loads. Each takes a target and answers one figure; all of them run in a namespace of their own."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import orjson

from servers.connection import Connection
from servers.h2load import h2load
from servers.target import Target

NAMESPACE = "benchmark"
_PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_PARALLEL = 32


def config_map(name: str, *, size: int, generate: bool = False) -> bytes:
    metadata = {"generateName" if generate else "name": name}
    return orjson.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "x" * size}})


@asynccontextmanager
async def namespace(target: Target) -> AsyncIterator[Connection]:
    """A fresh namespace, emptied at the end."""
    async with Connection(target) as connection:
        body = orjson.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        await connection.call("POST", "/api/v1/namespaces", body)
        await connection.call("DELETE", _PATH)
        yield connection
        await connection.call("DELETE", _PATH)


async def get_one(target: Target, *, requests: int, http1: bool) -> float:
    async with namespace(target) as connection:
        await connection.call("POST", _PATH, config_map("one", size=1000))
        load = await asyncio.to_thread(h2load, target, f"{_PATH}/one", requests=requests, http1=http1)
        return load.requests_per_second


async def list_many(target: Target, *, objects: int, requests: int) -> float:
    async with namespace(target):
        await in_parallel(target, objects, lambda c, i: _post(c, config_map(f"c{i}", size=2250)), parallel=_PARALLEL)
        load = await asyncio.to_thread(h2load, target, _PATH, requests=requests, clients=2, http1=True)
        return load.requests_per_second


async def create(target: Target, *, requests: int) -> float:
    async with namespace(target):
        with tempfile.NamedTemporaryFile("wb", delete=False) as file:
            file.write(config_map("c-", size=1000, generate=True))
        load = await asyncio.to_thread(h2load, target, _PATH, requests=requests, body=Path(file.name))
        return load.requests_per_second


async def update(target: Target, *, requests: int) -> float:
    """Each connection replaces an object of its own, again and again."""
    async with namespace(target) as connection:
        for i in range(_PARALLEL):
            await connection.call("POST", _PATH, config_map(f"u{i}", size=1000))

        async def put(connection: Connection, i: int) -> None:
            name = f"u{i % _PARALLEL}"
            answer = await connection.call("PUT", f"{_PATH}/{name}", config_map(name, size=1000 + i // _PARALLEL % 7))
            assert answer.status == 200, answer

        return await in_parallel(target, requests, put, parallel=_PARALLEL)


async def watch_fan_out(target: Target, *, watchers: int, events: int) -> float:
    """Events delivered a second, over all watchers together."""
    async with namespace(target) as connection:
        seen = [asyncio.create_task(_watch(target, events)) for _ in range(watchers)]
        await _wait_for_watchers(connection, watchers)
        start = time.perf_counter()
        for i in range(events):
            await connection.call("POST", _PATH, config_map(f"w{i}", size=1000))
        await asyncio.gather(*seen)
        return watchers * events / (time.perf_counter() - start)


async def _watch(target: Target, events: int) -> None:
    async with Connection(target) as connection:
        found = 0
        async for chunk in connection.stream(f"{_PATH}?watch=1&timeoutSeconds=120"):
            found += chunk.count(b'"type":"ADDED"')
            if found >= events:
                return


async def _wait_for_watchers(connection: Connection, watchers: int) -> None:
    """The server counts its watches; without that metric a moment has to do."""
    for _ in range(100):
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


async def _post(connection: Connection, body: bytes) -> None:
    answer = await connection.call("POST", _PATH, body)
    assert answer.status == 201, answer
