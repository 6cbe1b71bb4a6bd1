"""How long a GET and a create take at half of the rate that a server can do, while others ask for much.

    tails.py                                     a Pilothouse that is started here
    tails.py A.kubeconfig                        that one against a Pilothouse that is started here
    tails.py A.kubeconfig B.kubeconfig           one against the other
    --workers N                                  of the Pilothouse that is started here
    --seconds N                                  for each of the two

First each server shows how many it can do with nothing beside it. Then, at half of that, somebody lists 74 MB of
ConfigMaps every second, and somebody sends one of 2 MB, which both kinds of server read whole and refuse.
Kubeconfigs need a token. The load generator and the server share the machine; run nothing else beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parent))

from compare_servers import Figures, print_table
from servers.bodies import config_map
from servers.connection import Connection
from servers.h2load import Pace, ensure_h2load, h2load
from servers.loads import CONFIG_MAPS, namespace
from servers.local import local_pilothouse
from servers.target import Target

LARGE = "benchmark-large"
LARGE_MAPS = f"/api/v1/namespaces/{LARGE}/configmaps"
LISTED, EACH = 74, 1_000_000
REFUSED = config_map("refused", size=2_000_000)
_TO_FIND_OUT = 10_000


def measure(target: Target, *, seconds: float) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        body = Path(folder, "body")
        body.write_bytes(config_map("c-", generate=True))
        return asyncio.run(both(target, body, seconds))


async def both(target: Target, body: Path, seconds: float) -> Figures:
    async with namespace(target) as connection, LargeObjects(target):
        await connection.call("POST", CONFIG_MAPS, config_map("one"))
        figures = await tails("GET", target, f"{CONFIG_MAPS}/one", None, body.with_name("get.log"), seconds)
        return figures | await tails("create", target, CONFIG_MAPS, body, body.with_name("create.log"), seconds)


async def tails(name: str, target: Target, path: str, body: Path | None, log: Path, seconds: float) -> Figures:
    print(f"  {target.name}: {name} ...", file=sys.stderr)
    most = await asyncio.to_thread(h2load, target, path, requests=_TO_FIND_OUT, body=body)
    pace = Pace(most.requests_per_second / 2, log)
    beside = [
        asyncio.create_task(every_second(target, lambda connection: connection.call("GET", LARGE_MAPS))),
        asyncio.create_task(every_second(target, lambda connection: connection.call("POST", CONFIG_MAPS, REFUSED))),
    ]
    try:
        await asyncio.to_thread(h2load, target, path, requests=int(pace.rate * seconds), body=body, paced=pace)
    finally:
        for task in beside:
            task.cancel()
    took = pace.latencies()
    return {
        f"{name}, half of the maximal rate (1/s)": pace.rate,
        f"{name} p50 (ms)": took[len(took) // 2],
        f"{name} p99 (ms)": took[len(took) * 99 // 100],
        f"{name} worst (ms)": took[-1],
    }


async def every_second(target: Target, call: Callable[[Connection], Awaitable[object]]) -> None:
    """Until cancelled. Who takes longer than a second begins again at once."""
    async with Connection(target) as connection:
        while True:
            start = time.perf_counter()
            await call(connection)
            await asyncio.sleep(max(0.0, 1 - (time.perf_counter() - start)))


class LargeObjects:
    """A namespace with ConfigMaps of a megabyte each, for as long as the block lasts."""

    def __init__(self, target: Target) -> None:
        self._target = target

    async def __aenter__(self) -> None:
        async with Connection(self._target) as connection:
            named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LARGE}}
            await connection.call("POST", "/api/v1/namespaces", orjson.dumps(named))
            for number in range(LISTED):
                answer = await connection.call("POST", LARGE_MAPS, config_map(f"large-{number}", size=EACH))
                assert answer.status in (201, 409), answer

    async def __aexit__(self, *_: object) -> None:
        with suppress(OSError):
            async with Connection(self._target) as connection:
                await connection.call("DELETE", f"/api/v1/namespaces/{LARGE}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kubeconfigs", nargs="*", type=Path)
    parser.add_argument("--workers", default="1")
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    ensure_h2load()
    targets = [Target.from_kubeconfig(path) for path in options.kubeconfigs]
    results = [(each.name, measure(each, seconds=options.seconds)) for each in targets]
    if len(results) < 2:
        with (
            tempfile.TemporaryDirectory() as folder,
            local_pilothouse(Path(folder), f"--workers={options.workers}") as (target, _),
        ):
            results.append((target.name, measure(target, seconds=options.seconds)))
    print_table(results)


if __name__ == "__main__":
    main()
