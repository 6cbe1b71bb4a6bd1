"""The cost of selectors: lists through a whole server without a socket, and of keeping the indexes that they go by.

Every figure is processor time, best of some rounds. Pods are written into the store before the server starts.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import orjson
import uvloop

sys.path.insert(0, str(Path(__file__).parent))

from servers.bodies import pod
from servers.in_process import GUARDED, NAMESPACE, InProcess, fill, in_process

from pilothouse.apiserver.storage.cacher.object_index import FieldIndex, LabelIndex, ObjectIndex
from pilothouse.apiserver.storage.interface import Entry
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject
from pilothouse.kube.core.pods.resource import PODS
from pilothouse.machinery.objects import Json

PER_NODE, ROUNDS, REQUESTS = 100, 10, 100
CODEC = ObjectCodec("Pod", "v1", PODS.fields_of)


def stored(number: int) -> tuple[str, bytes]:
    """Return the key and bytes of a Pod of a Deployment of ten, with four labels, one of them its own."""
    name = f"web-{number:06}"
    obj: Json = orjson.loads(pod(name))
    own = {"app": f"app-{number % 300}", "pod-template-hash": f"{number // 10:010}", "tier": "web", "name": name}
    obj["metadata"] |= {"namespace": "default", "uid": f"{number:036}", "labels": own}
    obj["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    obj["spec"] |= {"nodeName": f"node-{number // PER_NODE}", "restartPolicy": "Always"}
    obj["status"] = {"phase": "Running", "podIP": "10.0.0.1"}
    return f"/registry/pods/default/{name}", CODEC.encode(obj)


async def best(work: Callable[[], Awaitable[object]], rounds: int = ROUNDS, requests: int = REQUESTS) -> float:
    """Seconds of one."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(requests):
            await work()
        times.append((time.process_time() - start) / requests)
    return min(times)


async def lists(folder: Path, pods: int) -> None:
    await fill(folder, map(stored, range(pods)))
    async with in_process(folder, *GUARDED) as server:
        await quiet()
        memory = resident()
        for query in ("labelSelector=app=none", "fieldSelector=spec.nodeName=node-7", "labelSelector=app=app-7"):
            first = await best(partial(_list, server, query), 1, 1)
            again = await best(partial(_list, server, query))
            say(f"LIST {query}, {pods:,} Pods", f"{first * 1e3:8.2f} ms, then {again * 1e6:8.1f} µs")
        get = await best(lambda: server.call("GET", f"{NAMESPACE}/pods/web-000007"))
        say(f"GET one of {pods:,} Pods", f"{get * 1e6:26.1f} µs")
        say("memory before the first list, after the last", f"{memory:8.1f} MB, then {resident():8.1f} MB")


async def quiet() -> None:
    """Returns when whatever else the server has to do after its start is done."""
    await asyncio.sleep(2)  # the index of labels is filled a moment after the start
    used = 1.0
    while used > 0.05:
        start = time.process_time()
        await asyncio.sleep(0.5)
        used = time.process_time() - start


async def _list(server: InProcess, query: str) -> None:
    response = await server.call("GET", f"{NAMESPACE}/pods", query=query)
    if not isinstance(response.body, bytes):
        async for _ in response.body:
            pass


def index(name: str, make: Callable[[], ObjectIndex], pods: int) -> None:
    objects = {key: StoredObject(Entry(key, value, 1, 1), CODEC) for key, value in map(stored, range(pods))}
    before, made, start = resident(), make(), time.process_time()
    made.fill_at_once(objects)
    filled, after = time.process_time() - start, resident()
    written = [obj.at(2) for obj in objects.values()]
    start = time.process_time()
    for obj in written:
        made.change(obj.key, objects[obj.key], obj)
    write = (time.process_time() - start) / pods * 1e6
    say(f"index of {name}, {pods:,} Pods", f"{filled * 1e3:.0f} ms, {after - before:.1f} MB, {write:.1f} µs a write")


def resident() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def say(what: str, figures: str) -> None:
    print(f"{what:64} {figures}", flush=True)


async def main() -> None:
    for name, make in (("labels", LabelIndex), ("spec.nodeName", lambda: FieldIndex("spec.nodeName"))):
        index(name, make, 30_000)
    for pods in (5_000, 30_000):
        with tempfile.TemporaryDirectory() as folder:
            await lists(Path(folder), pods)


if __name__ == "__main__":
    uvloop.run(main())
