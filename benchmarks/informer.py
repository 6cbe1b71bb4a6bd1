"""The pace of the client machinery: work queue cycles, a list of 50,000 pods, watch events; and the same list and
events through the official Python client's SharedInformer, if it is installed.

    python benchmarks/informer.py
    pip install --target /tmp/official kubernetes && PYTHONPATH=/tmp/official python benchmarks/informer.py

The bytes come from a process of its own that has them ready, so that only the client is measured.
"""

from __future__ import annotations

import asyncio
import importlib.util
import multiprocessing
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from time import perf_counter, process_time
from typing import Any

import orjson

from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import cancelled
from pilothouse.client.config.model import ClientConfig
from pilothouse.client.rest.connect import connect
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.machinery.objects import Json

PODS = 50_000
EVENTS = 50_000
CYCLES = 300_000


@dataclass(frozen=True)
class Figures:
    """Wall time, and in brackets what one core would have needed: the processor time of the whole process."""

    list_seconds: float
    list_cpu: float
    events_per_second: float
    events_per_cpu_second: float


def pod(number: int, version: int) -> Json:
    """About 1.3 kB of JSON."""
    containers = [
        {
            "name": f"c{i}",
            "image": f"registry.example.com/team/app-{i}:v1.2.3",
            "env": [{"name": f"VARIABLE_{n}", "value": "some value"} for n in range(4)],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        }
        for i in range(2)
    ]
    meta = {
        "name": f"pod-{number}",
        "namespace": f"ns-{number % 50}",
        "uid": f"00000000-0000-0000-0000-{number:012}",
        "resourceVersion": str(version),
        "labels": {"app": f"app-{number % 100}", "tier": "web"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    status = {"phase": "Running", "podIP": "10.0.0.1", "hostIP": "10.0.0.2"}
    return {"metadata": meta, "spec": {"containers": containers, "nodeName": "node-1"}, "status": status}


def lines(kind: str, first_version: int, count: int) -> bytes:
    types = {"kind": "Pod", "apiVersion": "v1"}
    events = ({"type": kind, "object": types | pod(n % PODS, first_version + n)} for n in range(count))
    return b"".join(orjson.dumps(event) + b"\n" for event in events)


class Source:
    """Answers a list, a streaming list or a watch with what it has ready."""

    def __init__(self) -> None:
        meta = {"resourceVersion": str(PODS)}
        items = [pod(n, n + 1) for n in range(PODS)]
        self._list = orjson.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items})
        end = {"resourceVersion": str(PODS), "annotations": {"k8s.io/initial-events-end": "true"}}
        bookmark = {"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": end}}
        self._initial = lines("ADDED", 1, PODS) + orjson.dumps(bookmark) + b"\n"
        self._events = lines("MODIFIED", PODS + 1, EVENTS)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            head_line = head.split(b"\r\n", 1)[0]
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
            if b"watch=" not in head_line:
                writer.write(b"content-length: %d\r\n\r\n%s" % (len(self._list), self._list))
                continue
            writer.write(b"transfer-encoding: chunked\r\n\r\n")
            if b"sendInitialEvents" in head_line:
                _write_chunks(writer, self._initial)
            _write_chunks(writer, self._events)
            await writer.drain()


def _write_chunks(writer: asyncio.StreamWriter, data: bytes, size: int = 1 << 16) -> None:
    for at in range(0, len(data), size):
        piece = data[at : at + size]
        writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def serve(port: Connection) -> None:
    async def main() -> None:
        server = await asyncio.start_server(Source().answer, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


@dataclass(frozen=True)
class Instant:
    wall: float
    cpu: float

    @classmethod
    def now(cls) -> Instant:
        return cls(perf_counter(), process_time())


class Meter:
    """A handler that notes when the first list and the last event arrived."""

    def __init__(self, finished: Callable[[], object]) -> None:
        self._finished = finished
        self.adds = self.updates = 0
        self.started = self.listed = self.ended = Instant.now()

    def on_add(self, obj: Any, is_in_initial_list: bool = True) -> None:
        self.adds += 1
        if self.adds == PODS:
            self.listed = Instant.now()

    def on_update(self, old: Any, new: Any) -> None:
        self.updates += 1
        if self.updates == EVENTS:
            self.ended = Instant.now()
            self._finished()

    def on_delete(self, obj: Any) -> None:
        raise AssertionError("nothing is deleted")

    @property
    def figures(self) -> Figures:
        return Figures(
            list_seconds=self.listed.wall - self.started.wall,
            list_cpu=self.listed.cpu - self.started.cpu,
            events_per_second=EVENTS / (self.ended.wall - self.listed.wall),
            events_per_cpu_second=EVENTS / (self.ended.cpu - self.listed.cpu),
        )


async def ours(port: int, *, streaming: bool) -> Figures:
    done = asyncio.Event()
    async with connect(ClientConfig(host=f"http://127.0.0.1:{port}", qps=0)) as client:
        informer = SharedIndexInformer(client.resource("v1", "pods"), use_watch_list=streaming)
        meter = Meter(done.set)
        informer.add_event_handler(meter)
        task = asyncio.ensure_future(informer.run())
        await done.wait()
        await cancelled(task)
        assert len(informer.indexer) == PODS
    return meter.figures


def official(port: int) -> Figures:
    from kubernetes import client
    from kubernetes.informer import SharedInformer

    done = threading.Event()
    api = client.CoreV1Api(client.ApiClient(client.Configuration(host=f"http://127.0.0.1:{port}")))
    informer = SharedInformer(api.list_pod_for_all_namespaces)
    meter = Meter(done.set)
    informer.add_event_handler("ADDED", meter.on_add)
    informer.add_event_handler("MODIFIED", lambda obj: meter.on_update(None, obj))
    informer.start()
    done.wait()
    return meter.figures


def list_and_watch(port: int) -> Figures:
    return asyncio.run(ours(port, streaming=False))


def streaming_list(port: int) -> Figures:
    return asyncio.run(ours(port, streaming=True))


def measured(work: Callable[[int], Figures], port: int) -> Figures:
    """In a process of its own: nobody starts with what another left in memory, or has to know how to stop."""
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=lambda: sending.send(work(port)), daemon=True)
    process.start()
    figures: Figures = receiving.recv()
    process.kill()
    return figures


async def queue_cycles(name: str) -> float:
    queue: RateLimitingQueue[int] = RateLimitingQueue(name)
    started = perf_counter()
    for number in range(CYCLES):
        queue.add(number & 1023)
        queue.done(await queue.get())
    return CYCLES / (perf_counter() - started)


def show(what: str, figures: Figures) -> None:
    listed = f"{figures.list_seconds:5.2f} s ({figures.list_cpu:5.2f} s)"
    events = f"{figures.events_per_second:8,.0f}/s ({figures.events_per_cpu_second:8,.0f}/s)"
    print(f"{what:26} list of {PODS:,}: {listed}    events: {events}")


def main() -> None:
    print(f"work queue, add/get/done   {asyncio.run(queue_cycles('')):12,.0f}/s")
    print(f"work queue with metrics    {asyncio.run(queue_cycles('benchmark')):12,.0f}/s")
    receiving, sending = multiprocessing.Pipe(duplex=False)
    source = multiprocessing.Process(target=serve, args=(sending,), daemon=True)
    source.start()
    port = receiving.recv()
    listed = measured(list_and_watch, port)
    show("informer, list and watch", listed)
    show("informer, streaming list", measured(streaming_list, port))
    if importlib.util.find_spec("kubernetes"):
        theirs = measured(official, port)
        show("official SharedInformer", theirs)
        lists = theirs.list_cpu / listed.list_cpu
        events = listed.events_per_cpu_second / theirs.events_per_cpu_second
        print(f"ours is {lists:.1f} times as fast on the list and {events:.1f} times on events")
    source.terminate()


if __name__ == "__main__":
    main()
