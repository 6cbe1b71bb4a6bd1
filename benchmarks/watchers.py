"""Many watchers with selectors: memory while they are idle, and how far a write is to the last of them.

watchers.py                          1,000 and 5,000 watchers of a Pilothouse that is started here
watchers.py --watchers N --workers N
watchers.py --source DIR             of another tree

A quarter each of the watchers watches a namespace, a label in it, one object of it, and a namespace without writes.
They share HTTP/2 connections, 50 on each, as the informers of a program do.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parent))

from servers.local import local_pilothouse
from servers.multiplexed import Multiplexed, client_tls
from servers.processes import memory, processor_seconds
from servers.target import Target

OBJECTS, EVENTS, ON_ONE_CONNECTION = 20, 100, 50
JSON = "application/json"
BUSY, QUIET = (f"/api/v1/namespaces/{name}/configmaps" for name in ("busy", "quiet"))


class Deliveries:
    """Counts delivered events, and wakes who waits for a number of them."""

    def __init__(self) -> None:
        self.number = 0
        self._wanted = 0
        self._reached = asyncio.Event()

    def receive(self, data: bytes) -> None:
        self.number += data.count(b"\n")
        if self.number >= self._wanted:
            self._reached.set()

    async def wait_for(self, number: int) -> None:
        self._wanted = number
        self._reached.clear()
        if self.number < number:
            await self._reached.wait()


def path_of(number: int) -> str:
    options = "watch=1&resourceVersion=0&timeoutSeconds=1800"
    match number % 4:
        case 0:
            return f"{BUSY}?{options}"
        case 1:
            return f"{BUSY}?{options}&labelSelector=app%3Da{number // 4 % OBJECTS}"
        case 2:
            return f"{BUSY}?{options}&fieldSelector=metadata.name%3Do{number // 4 % OBJECTS}"
        case _:
            return f"{QUIET}?{options}"


def config_map(number: int, data: str) -> bytes:
    meta = {"name": f"o{number}", "labels": {"app": f"a{number}"}}
    return orjson.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": data}})


async def measure(target: Target, watchers: int) -> None:
    assert target.pid is not None
    tls = client_tls(target)
    connections = [await Multiplexed.connect(target, tls) for _ in range(watchers // ON_ONE_CONNECTION + 1)]
    writer = connections.pop()
    for name in ("busy", "quiet"):
        body = orjson.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await writer.call("POST", "/api/v1/namespaces", body, accept=JSON, media=JSON)
    for number in range(OBJECTS):
        await writer.call("POST", BUSY, config_map(number, "x"), accept=JSON, media=JSON)
    before, deliveries = memory(target.pid), Deliveries()
    running = [
        asyncio.create_task(
            connections[number // ON_ONE_CONNECTION].call("GET", path_of(number), accept=JSON, sink=deliveries.receive)
        )
        for number in range(watchers)
    ]
    quarter = watchers // 4
    await deliveries.wait_for(quarter * OBJECTS + 4 * quarter)  # the state, and kube-root-ca.crt of each namespace
    idle = (memory(target.pid) - before) / watchers * 1000
    by_object = [quarter + 2 * sum(n // 4 % OBJECTS == k for n in range(1, watchers, 4)) for k in range(OBJECTS)]
    delivered, used, began, latencies = deliveries.number, processor_seconds(target.pid), time.perf_counter(), []
    first = delivered
    for event in range(EVENTS):
        number = event % OBJECTS
        delivered += by_object[number]
        sent = time.perf_counter()
        answer = await writer.call("PUT", f"{BUSY}/o{number}", config_map(number, f"{event}"), accept=JSON, media=JSON)
        assert answer.status == 200, answer
        await deliveries.wait_for(delivered)
        latencies.append((time.perf_counter() - sent) * 1000)
    events, seconds = delivered - first, time.perf_counter() - began
    latencies.sort()
    figures = [
        f"{watchers:,}",
        f"{idle:.1f}",
        f"{events / seconds:,.0f}",
        f"{(processor_seconds(target.pid) - used) / events * 1e6:.1f}",
        f"{latencies[EVENTS // 2]:.1f}",
        f"{latencies[EVENTS * 99 // 100]:.1f}",
    ]
    print("| " + " | ".join(figures) + " |", flush=True)
    for connection in connections:
        connection.close()
    writer.close()
    await asyncio.gather(*running, return_exceptions=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watchers", type=int, action="append")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--source", type=Path, default=Path(__file__).parent.parent)
    options = parser.parse_args()
    heads = ("watchers", "memory of an idle one (kB)", "events/s", "processor time an event (µs)")
    print("| " + " | ".join((*heads, "write to last watcher p50 (ms)", "p99 (ms)")) + " |")
    print("|---" * 6 + "|")
    for watchers in options.watchers or (1000, 5000):
        with (
            tempfile.TemporaryDirectory() as folder,
            local_pilothouse(Path(folder), f"--workers={options.workers}", source=options.source) as (target, _),
        ):
            asyncio.run(measure(target, watchers))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    main()
