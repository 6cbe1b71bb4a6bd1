"""Puts the same load on one or two API servers and prints the figures and their ratios.

    compare_servers.py                                    a Pilothouse that is started here
    compare_servers.py A.kubeconfig                       that one against a Pilothouse that is started here
    compare_servers.py A.kubeconfig B.kubeconfig          one against the other
    --pid N (once per kubeconfig)                         the server's process, for its memory
    --workers N                                           of the Pilothouse that is started here
    --quick                                               a tenth of the load

Kubeconfigs need a token. The load generator and the server share the machine; run nothing else beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from servers import loads
from servers.bodies import config_map, pod
from servers.h2load import ensure_h2load
from servers.local import local_pilothouse
from servers.processes import memory
from servers.target import Target

Figures = dict[str, float]


def measure(target: Target, *, scale: int) -> Figures:
    some, many = 5_000 // scale, 30_000 // scale
    nothing, node = "?labelSelector=app%3Dnobody", "?fieldSelector=spec.nodeName%3Dnode-7"

    async def pods(upto: int) -> float:
        await loads.fill_with_pods(target, upto=upto)
        return upto

    rows: dict[str, Callable[[], Coroutine[Any, Any, float]]] = {
        "GET ConfigMap of 1 kB, HTTP/1.1 (1/s)": lambda: loads.get_one(target, requests=40_000 // scale, http1=True),
        "GET, HTTP/2 (1/s)": lambda: loads.get_one(target, requests=40_000 // scale, http1=False),
        "create ConfigMap of 1 kB (1/s)": lambda: loads.create(
            target, loads.CONFIG_MAPS, config_map("c-", generate=True), requests=20_000 // scale
        ),
        "update ConfigMap of 1 kB (1/s)": lambda: loads.update(target, requests=10_000 // scale),
        "create Pod (1/s)": lambda: loads.create(target, loads.PODS, pod("c-", generate=True), requests=4_000 // scale),
        "Pods": lambda: pods(some),
        "LIST all (1/s)": lambda: loads.list_pods(target, requests=max(200 // scale, 10)),
        "LIST a label that none has (1/s)": lambda: loads.list_pods(
            target, requests=4_000 // scale, clients=32, query=nothing
        ),
        "watch events to 200 watchers (1/s)": lambda: loads.watch_fan_out(
            target, watchers=200, events=max(500 // scale, 50)
        ),
        "Pods, more": lambda: pods(many),
        "LIST a label that none has, first time (ms)": lambda: loads.list_once(target, "?labelSelector=tier%3Dx"),
        "LIST by spec.nodeName, first time (ms)": lambda: loads.list_once(target, node),
        "LIST by spec.nodeName (ms)": lambda: loads.list_once(target, node.replace("7", "8")),
    }
    figures: Figures = {}
    if target.pid:
        figures["memory at rest (MB)"] = memory(target.pid)
    for name, load in rows.items():
        print(f"  {target.name}: {name} ...", file=sys.stderr)
        figures[name] = asyncio.run(load())
    if target.pid:
        figures["memory after the loads (MB)"] = memory(target.pid)
    return figures


def print_table(results: list[tuple[str, Figures]]) -> None:
    names = [name for name, _ in results]
    print("| | " + " | ".join(names) + (" | ratio |" if len(results) == 2 else " |"))
    print("|---" * (len(results) + 1 + (len(results) == 2)) + "|")
    for row in results[-1][1]:
        values = [figures.get(row) for _, figures in results]
        cells = ["–" if value is None else f"{value:,.3g}" if value < 100 else f"{value:,.0f}" for value in values]
        if len(values) == 2:
            cells.append(f"{values[1] / values[0]:.2f}×" if values[0] and values[1] else "–")
        print(f"| {row} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kubeconfigs", nargs="*", type=Path)
    parser.add_argument("--pid", action="append", type=int, default=[])
    parser.add_argument("--workers", default="1")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    ensure_h2load()
    scale = 10 if options.quick else 1
    pids = [*options.pid, None, None]
    results = [
        (target.name, measure(target, scale=scale))
        for target in (
            Target.from_kubeconfig(path, pid=pid) for path, pid in zip(options.kubeconfigs, pids, strict=False)
        )
    ]
    if len(results) < 2:
        with (
            tempfile.TemporaryDirectory() as folder,
            local_pilothouse(Path(folder), f"--workers={options.workers}") as (target, ready),
        ):
            results.append((target.name, {"ready after (s)": ready} | measure(target, scale=scale)))
    print_table(results)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    main()
