"""Clean starts for tests: going back to a snapshot and forking, against a namespace that is made and emptied; and the
cost of further clusters.

    python benchmarks/test_bench.py [--tests 100] [--objects 20] [--template 300] [--clusters 20]

The server is in this process, with its default controllers; what is counted is the processor time of all of it, the
client included, and the time on the clock. Memory is the resident memory of the process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from pilothouse.testing import API, clusters, server

DEFAULT = "/api/v1/namespaces/default"
ROUNDS = 20


@dataclass(slots=True)
class Times:
    """Seconds of the processor and on the clock, of one thing done several times."""

    processor: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)

    @contextmanager
    def measured(self) -> Iterator[None]:
        processor, clock = time.process_time(), time.perf_counter()
        yield
        self.processor.append(time.process_time() - processor)
        self.clock.append(time.perf_counter() - clock)

    def report(self, what: str) -> None:
        processor, clock = (statistics.median(each) * 1e3 for each in (self.processor, self.clock))
        print(f"{what:<58} {processor:8.1f} ms of one core, {clock:8.1f} ms")

    def report_sum(self, what: str) -> None:
        print(f"{what:<58} {sum(self.processor):8.2f} s of one core,  {sum(self.clock):8.2f} s")


async def config_map(api: API, namespace: str, name: str) -> None:
    body = {"metadata": {"name": name}, "data": {"a": "b" * 500}}
    answer = await api.request("POST", f"{namespace}/configmaps", body)
    assert answer.status == 201, answer.body


async def config_maps(api: API, namespace: str, number: int) -> None:
    for each in range(number):
        await config_map(api, namespace, f"made-{each}")


async def restores(api: API, objects: int) -> None:
    start, times = await api.snapshot(), Times()
    for _ in range(ROUNDS):
        await config_maps(api, DEFAULT, objects)
        with times.measured():
            await api.restore(start)
    times.report(f"restore {len(start.entries)} objects ({start.size >> 10} kB), {objects} differ")


async def forks(api: API) -> None:
    times = Times()
    for _ in range(ROUNDS // 4):
        with times.measured():
            forking = api.fork()
            await forking.__aenter__()
        await forking.__aexit__(None, None, None)
    times.report("fork, until it is ready")


async def with_restores(api: API, tests: int, objects: int) -> Times:
    start, times = await api.snapshot(), Times()
    with times.measured():
        for _ in range(tests):
            await config_maps(api, DEFAULT, objects)
            await api.restore(start)
    return times


async def with_namespaces(api: API, tests: int, objects: int) -> Times:
    times = Times()
    with times.measured():
        for number in range(tests):
            path = f"/api/v1/namespaces/test-{number}"
            await api.request("POST", "/api/v1/namespaces", {"metadata": {"name": f"test-{number}"}})
            await config_maps(api, path, objects)
            await api.request("DELETE", path)
            await gone(api, f"test-{number}")
    return times


async def gone(api: API, name: str) -> None:
    """Returns when the namespace is. A watch tells."""
    target = f"/api/v1/namespaces?watch=true&timeoutSeconds=30&fieldSelector=metadata.name%3D{name}"
    watch = await api.open("GET", target)
    async for chunk in watch.chunks():
        if b'"type":"DELETED"' in chunk:
            await watch.close()
            return
    if (await api.request("GET", f"/api/v1/namespaces/{name}")).status != 404:
        raise AssertionError(f"{name} is not gone")


async def further_clusters(number: int) -> None:
    """Print the cost of a cluster beside others, from its start until a second after all are ready."""
    async with clusters(first=1):
        gc.collect()
        memory, times = resident(), Times()
        with times.measured():
            running = clusters(hub=1, spokes=number - 1)
            fleet = await running.__aenter__()
            await asyncio.sleep(1)
        gc.collect()
        each = (resident() - memory) / number / 1e6
        processor, clock = times.processor[0] / number, (times.clock[0] - 1) / number
        print(f"{'each of ' + str(number) + ' further clusters':<58} {processor:8.2f} s of one core,  {clock:8.2f} s")
        print(f"{'':<58} {each:8.1f} MB")
        reset = Times()
        with reset.measured():
            await fleet.reset()
        reset.report(f"reset {number} clusters")
        await running.__aexit__()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def run(tests: int, objects: int, template: int) -> None:
    async with server() as api:
        there = len((await api.snapshot()).entries)
        for number in range(max(0, template - there)):
            await config_map(api, DEFAULT, f"template-{number}")
        await restores(api, objects)
        await forks(api)
        compared: dict[str, Callable[[API, int, int], Awaitable[Times]]] = {
            "a restore after each": with_restores,
            "a namespace for each": with_namespaces,
        }
        for what, measure in compared.items():
            (await measure(api, tests, objects)).report_sum(f"{tests} tests of {objects} objects, {what}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tests", type=int, default=100)
    parser.add_argument("--objects", type=int, default=20)
    parser.add_argument("--template", type=int, default=300)
    parser.add_argument("--clusters", type=int, default=20)
    parsed = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if parsed.clusters:
            runner.run(further_clusters(parsed.clusters))
        runner.run(run(parsed.tests, parsed.objects, parsed.template))


if __name__ == "__main__":
    main()
