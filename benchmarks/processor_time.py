"""The cost of a request over TLS to the server's process, in processor time, whatever else the machine does.

processor_time.py                          this tree, by a user whose rights come from a RoleBinding
processor_time.py --source DIR             another tree against this one; their rounds take turns
processor_time.py --unguarded              this tree without RBAC, fair queuing and admission against with them
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parent))

from servers.bodies import config_map, pod
from servers.connection import Connection
from servers.h2load import ensure_h2load, h2load
from servers.in_process import BINDING, ROLE_BINDINGS, UNGUARDED
from servers.loads import in_parallel, watch_fan_out
from servers.local import TOKEN, USER_TOKEN, local_pilothouse
from servers.target import Target

ROUNDS = 3
LISTED = 5000
NAMESPACE = "/api/v1/namespaces/default"
CONFIG_MAPS, PODS, SECRETS = f"{NAMESPACE}/configmaps", f"{NAMESPACE}/pods", f"{NAMESPACE}/secrets"
_TICKS = os.sysconf("SC_CLK_TCK")

Load = Callable[[Target, Path], None]


def _post(path: str, body: bytes, requests: int) -> Load:
    def run(target: Target, folder: Path) -> None:
        file = folder / "body.json"
        file.write_bytes(body)
        h2load(target, path, requests=requests, body=file)

    return run


def _update(requests: int) -> Load:
    async def put(connection: Connection, number: int) -> None:
        name = f"u{number % 32}"
        body = config_map(name, size=1000 + number // 32 % 97)
        answer = await connection.call("PUT", f"{CONFIG_MAPS}/{name}", body)
        assert answer.status == 200, answer

    def run(target: Target, _: Path) -> None:
        asyncio.run(in_parallel(target, requests, put, parallel=32))

    return run


LIST = f"list {LISTED} Secrets"
WATCHERS, EVENTS = 200, 500


def _watch(target: Target) -> None:
    target = replace(target, token=TOKEN)  # the namespace of the watchers is not the user's
    asyncio.run(watch_fan_out(target, watchers=WATCHERS, events=EVENTS))


LOADS: dict[str, tuple[int, Load]] = {
    "GET, HTTP/2": (12_000, lambda target, _: _get(target, http1=False)),
    "GET, HTTP/1.1": (12_000, lambda target, _: _get(target, http1=True)),
    "create ConfigMap": (3_000, _post(CONFIG_MAPS, config_map("c-", generate=True), 3_000)),
    "create Pod": (1_500, _post(PODS, pod("p-", generate=True), 1_500)),
    "update ConfigMap": (3_000, _update(3_000)),
    f"event to one of {WATCHERS} watchers": (WATCHERS * EVENTS, lambda target, _: _watch(target)),
    LIST: (40, lambda target, _: _list(target)),
}


def _get(target: Target, *, http1: bool) -> None:
    h2load(target, f"{CONFIG_MAPS}/one", requests=12_000, http1=http1)


def _list(target: Target) -> None:
    h2load(target, SECRETS, requests=40, clients=2, http1=True)


async def prepare(admin: Target, user: Target, *, secrets: int) -> None:
    async with Connection(admin) as connection:
        await connection.call("POST", ROLE_BINDINGS, orjson.dumps(BINDING))
    async with Connection(user) as connection:
        for _ in range(100):
            if (await connection.call("GET", f"{NAMESPACE}/serviceaccounts/default")).status == 200:
                break
            await asyncio.sleep(0.1)
        for name in ("one", *(f"u{number}" for number in range(32))):
            assert (await connection.call("POST", CONFIG_MAPS, config_map(name))).status == 201

    async def secret(connection: Connection, number: int) -> None:
        body = orjson.dumps({"metadata": {"name": f"s{number}"}, "stringData": {"k": "v" * 1500}})
        assert (await connection.call("POST", SECRETS, body)).status == 201

    await in_parallel(user, secrets, secret, parallel=32)


def microseconds(target: Target, name: str, folder: Path) -> float:
    requests, load = LOADS[name]
    before = _processor_seconds(target)
    load(target, folder)
    return (_processor_seconds(target) - before) / requests * 1e6


def _processor_seconds(target: Target) -> float:
    times = Path(f"/proc/{target.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(times[11]) + int(times[12])) / _TICKS


def measure(targets: list[Target], names: list[str], folder: Path) -> None:
    print("| µs of processor time | " + " | ".join(target.name for target in targets) + " | ratio |")
    print("|---" * (len(targets) + 2) + "|")
    for name in names:
        rounds = [[microseconds(target, name, folder) for target in targets] for _ in range(ROUNDS)]
        best = [min(each) for each in zip(*rounds, strict=True)]
        cells = " | ".join(f"{value:,.0f}" for value in best)
        print(f"| {name} | {cells} | {best[-1] / best[0]:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--unguarded", action="store_true")
    parser.add_argument("loads", nargs="*", default=list(LOADS))
    options = parser.parse_args()
    ensure_h2load()
    here = Path(__file__).parent.parent
    trees: list[tuple[str, Path, tuple[str, ...]]] = [("this tree", here, ())]
    if options.source:
        trees.insert(0, (options.source.name, options.source, ()))
    if options.unguarded:
        trees.insert(0, ("unguarded", here, UNGUARDED))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        targets = []
        for number, (name, source, flags) in enumerate(trees):
            (data := folder / str(number)).mkdir()
            admin, _ = stack.enter_context(local_pilothouse(data, *flags, source=source))
            targets.append(replace(admin, name=name, token=USER_TOKEN))
            asyncio.run(prepare(admin, targets[-1], secrets=LISTED if LIST in options.loads else 0))
        measure(targets, options.loads, folder)


if __name__ == "__main__":
    main()
