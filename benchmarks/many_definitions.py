"""Many CustomResourceDefinitions, and the speed of custom resources beside that of a built-in kind.

many_definitions.py                      installs 1,000 definitions of one group, uses each, and starts again with them
many_definitions.py --definitions 200    the same with fewer
many_definitions.py --speed              only get, list and create, against ConfigMaps, as processor time in one process
many_definitions.py --profile create     the same under cProfile, dearest functions first
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import orjson
import uvloop
from request_path import Load, best, profile
from servers.connection import Connection
from servers.local import local_pilothouse
from servers.target import Target

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from custom_resources import WIDGETS, definition, install, version
from whole_server import CONFIG_MAPS, whole_server

from pilothouse.machinery.objects import Json
from pilothouse.testing import API

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PARALLEL = 16
LISTED = 500
ALONE = 20
_PAGE_MB = 4096 / 1024**2


def schema(fields: int = 40) -> Json:
    """About as much as a small operator says: documented fields, a list with keys, a few rules."""
    port = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "maxLength": 63}, "port": {"type": "integer", "minimum": 1}},
    }
    ports = {
        "type": "array",
        "maxItems": 20,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": port,
    }
    documented = {
        f"field{number}": {"type": "string", "description": "What this field is for. " * 3, "maxLength": 100}
        for number in range(fields)
    }
    rule = {"rule": "!has(self.replicas) || self.replicas <= 100", "message": "too many"}
    others = {"ports": ports, "replicas": {"type": "integer", "default": 1}, "k": {"type": "string"}}
    spec = {"type": "object", "properties": {**documented, **others}, "x-kubernetes-validations": [rule]}
    return {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}


def numbered(number: int) -> Json:
    return definition(version(schema=schema()), plural=f"things{number}", kind=f"Thing{number}")


async def in_parallel(
    target: Target, numbers: range, work: Callable[[Connection, int], Awaitable[None]], *, parallel: int = PARALLEL
) -> None:
    async def worker(first: int) -> None:
        async with Connection(target) as connection:
            for number in numbers[first::parallel]:
                await work(connection, number)

    await asyncio.gather(*(worker(first) for first in range(parallel)))


class Installation:
    """Installs definitions, and asks for the custom resources of each as soon as it says that it is established."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.installed: list[float] = []
        """When each was accepted."""
        self.established: set[str] = set()
        self.delays: list[float] = []
        """Seconds from there to the first answer."""

    async def run(self, numbers: range, *, parallel: int = PARALLEL) -> None:
        watching = asyncio.create_task(self._watch(len(numbers)))
        await in_parallel(self._target, numbers, self._install, parallel=parallel)
        await watching

    async def _install(self, connection: Connection, number: int) -> None:
        answer = await connection.call("POST", DEFINITIONS, orjson.dumps(numbered(number)))
        assert answer.status == 201, answer.body
        self.installed.append(time.perf_counter())

    async def _watch(self, count: int) -> None:
        async with Connection(self._target) as watch, Connection(self._target) as asking:
            now = (await asking.call("GET", f"{DEFINITIONS}?limit=1")).json()["metadata"]["resourceVersion"]
            rest = b""
            async for chunk in watch.stream(f"{DEFINITIONS}?watch=true&resourceVersion={now}"):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    await self._look(orjson.loads(line)["object"], asking)
                if len(self.established) == count:
                    return

    async def _look(self, shown: Json, asking: Connection) -> None:
        name, conditions = shown["metadata"]["name"], shown["status"].get("conditions") or ()
        is_established = any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
        if not is_established or name in self.established:
            return
        self.established.add(name)
        began = time.perf_counter()
        path = f"/apis/example.com/v1/{name.partition('.')[0]}"
        answer = await asking.call("GET", path)
        while answer.status != 200:
            answer = await asking.call("GET", path)
        self.delays.append(time.perf_counter() - began)


def resident(target: Target) -> float:
    pages = Path(f"/proc/{target.pid}/statm").read_text().split()[1]
    return int(pages) * _PAGE_MB


async def use_each(target: Target, count: int) -> None:
    async def use(connection: Connection, number: int) -> None:
        path, kind = f"/apis/example.com/v1/namespaces/default/things{number}", f"Thing{number}"
        obj = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a"}, "spec": {"replicas": 2}}
        answer = await connection.call("POST", path, orjson.dumps(obj))
        assert answer.status == 201, answer.body

    await in_parallel(target, range(count), use)


async def measure_installation(target: Target, count: int) -> None:
    before, began = resident(target), time.perf_counter()
    installation = Installation(target)
    await installation.run(range(count))
    took, times, tenth = time.perf_counter() - began, installation.installed, max(count // 10, 1)
    ratio = (times[-1] - times[-tenth - 1]) / (times[tenth] - times[0])
    print(f"definitions of {len(orjson.dumps(numbered(0)))} bytes: {count} established in {took:.1f} s")
    print(f"the last tenth took            {ratio:6.2f} times as long as the first")
    print(f"memory of one, asked for once  {(resident(target) - before) / count * 1024:6.1f} kB")
    began = time.perf_counter()
    await use_each(target, count)
    print(f"first object of one            {(time.perf_counter() - began) / count * 1e3:6.1f} ms")
    print(f"memory of one, with an object  {(resident(target) - before) / count * 1024:6.1f} kB")
    alone = Installation(target)
    await alone.run(range(count, count + ALONE), parallel=1)
    for name, each in (("while many are installed", installation), ("one by one", alone)):
        delays = sorted(each.delays)
        shown = f"{statistics.median(delays) * 1e3:6.1f} ms, at most {delays[-1] * 1e3:.1f} ms"
        print(f"served after Established       {shown}, {name}")


def measure_scale(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with local_pilothouse(Path(folder)) as (_, seconds):
            pass
        with local_pilothouse(Path(folder)) as (target, seconds):
            empty = resident(target)
            print(f"ready without definitions      {seconds:6.2f} s, {empty:.0f} MB")
            asyncio.run(measure_installation(target, count))
        with local_pilothouse(Path(folder)) as (target, seconds):
            idle = resident(target)
            print(f"ready with {count} definitions    {seconds:6.2f} s, {idle:.0f} MB")
            print(f"memory of one, idle            {(idle - empty) / count * 1024:6.1f} kB")


class Loads:
    """The same loads on a built-in kind and on a custom resource."""

    def __init__(self, server: API, path: str, body: str) -> None:
        self._server = server
        self._path = path
        self._body = body
        self._created = 0

    async def get(self, count: int) -> None:
        for _ in range(count):
            await self._server.open("GET", f"{self._path}/one")

    async def list(self, count: int) -> None:
        for _ in range(count):
            await self._server.request("GET", f"{self._path}?labelSelector=listed")

    async def create(self, count: int) -> None:
        await asyncio.gather(*(self._several(count // PARALLEL) for _ in range(PARALLEL)))

    async def _several(self, count: int) -> None:
        for _ in range(count):
            self._created += 1
            await self.add(f"c{self._created}")

    async def add(self, name: str, labels: str = "") -> None:
        answer = await self._server.request("POST", self._path, self._body % (name, labels))
        assert answer.status == 201, answer.body


_META = '"metadata":{"name":"%s","labels":{%s}}'
_CONFIG_MAP = '{"apiVersion":"v1","kind":"ConfigMap",' + _META + ',"data":{"k":"' + "v" * 1000 + '"}}'
_WIDGET = '{"apiVersion":"example.com/v1","kind":"Widget",' + _META + ',"spec":{"k":"' + "v" * 1000 + '"}}'
COUNTS = {"get": 2000, "list": 20, "create": 960}


async def measure_speed(profiled: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with whole_server(Path(folder)) as server:
            await install(server, definition(version(schema=schema())))
            built_in, custom = Loads(server, CONFIG_MAPS, _CONFIG_MAP), Loads(server, WIDGETS, _WIDGET)
            for loads in (built_in, custom):
                await loads.add("one")
                for number in range(LISTED):
                    await loads.add(f"l{number}", '"listed":"yes"')
            if profiled:
                await profile(getattr(custom, profiled), COUNTS[profiled])
                return
            for name, count in COUNTS.items():
                await _compare(name, getattr(built_in, name), getattr(custom, name), count)


async def _compare(name: str, built_in: Load, custom: Load, count: int) -> None:
    first, second = await best([built_in, custom], count)
    print(f"{name:8} ConfigMap {first:8.1f} µs   custom resource {second:8.1f} µs   {second / first:5.2f} times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--definitions", type=int, default=1000)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--profile", choices=list(COUNTS), default="")
    options = parser.parse_args()
    if not (options.speed or options.profile):
        measure_scale(options.definitions)
    uvloop.run(measure_speed(options.profile))


if __name__ == "__main__":
    main()
