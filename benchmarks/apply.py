"""The cost of tracking the ownership of fields, in microseconds of processor time, inside the server without a socket.

apply.py             creates, updates and applies of ConfigMaps and Pods, with tracking and without
apply.py --profile   creates of Pods under cProfile, dearest functions first
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson
import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from decode import CONFIG_MAP, POD
from whole_server import whole_server

from pilothouse.apiserver.endpoints.fieldmanager.manager import FieldManager
from pilothouse.testing import API

ROUNDS, COUNT = 16, 100

Load = Callable[[], Awaitable[None]]


class Writes:
    """Creates, updates and applies of one kind; every one of them changes something."""

    def __init__(self, server: API, obj: Any, resource: str) -> None:
        self._server = server
        self._obj = deepcopy(obj)
        self._obj["metadata"].pop("generateName", None)
        self._obj["metadata"].pop("ownerReferences", None)
        self._path = f"/api/v1/namespaces/default/{resource}"
        self._number = 0

    async def create(self) -> None:
        for _ in range(COUNT):
            await self._write("POST", self._path, f"c{self._next()}")

    async def update(self) -> None:
        for _ in range(COUNT):
            await self._write("PUT", f"{self._path}/one", "one", annotation=str(self._next()))

    async def apply(self) -> None:
        for _ in range(COUNT):
            target = f"{self._path}/applied?fieldManager=me&force=true"
            await self._write("PATCH", target, "applied", annotation=str(self._next()))

    async def prepare(self) -> None:
        await self._write("POST", self._path, "one")

    async def _write(self, method: str, target: str, name: str, annotation: str = "") -> None:
        annotations = {"n": annotation} if annotation else {}
        obj = self._obj | {"metadata": self._obj["metadata"] | {"name": name, "annotations": annotations}}
        media = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
        answer = await self._server.open(method, target, orjson.dumps(obj), media=media)
        assert answer.status in (200, 201), await answer.read()

    def _next(self) -> int:
        self._number += 1
        return self._number


async def main(*, profiled: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with whole_server(Path(folder)) as server:
            pods = Writes(server, POD, "pods")
            if profiled:
                await profile(pods.create)
                return
            await report("ConfigMap", Writes(server, CONFIG_MAP, "configmaps"))
            await report("Pod", pods)


async def report(kind: str, writes: Writes) -> None:
    await writes.prepare()
    for name, load in (("create", writes.create), ("update", writes.update)):
        plain, tracked = await compared(load)
        percent = (tracked / plain - 1) * 100
        print(f"{kind:10} {name:7} {plain:6.0f} µs untracked   {tracked:6.0f} µs tracked   {percent:+.0f} %")
    print(f"{kind:10} apply   {await best(writes.apply):6.0f} µs")


async def compared(load: Load) -> tuple[float, float]:
    """Rounds take turns, so that a busy machine treats both alike."""
    plain, tracked = [], []
    for _ in range(ROUNDS):
        with patch.object(FieldManager, "update", carry_over):
            plain.append(await timed(load))
        tracked.append(await timed(load))
    return min(plain), min(tracked)


def carry_over(self: FieldManager, live: Any, new: Any, manager: str) -> None:
    """In place of tracking."""
    if live is not None:
        new["metadata"]["managedFields"] = live["metadata"]["managedFields"]


async def best(load: Load) -> float:
    return min([await timed(load) for _ in range(ROUNDS)])


async def timed(load: Load) -> float:
    start = time.process_time()
    await load()
    return (time.process_time() - start) / COUNT * 1e6


async def profile(load: Load) -> None:
    await load()
    profiler = cProfile.Profile()
    profiler.enable()
    await load()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", action="store_true")
    uvloop.run(main(profiled=parser.parse_args().profile))
