"""Puts the same load on API servers in turns (A B A B …), and prints rates, processor time per operation and ratios.

    compare_servers.py                                    a Pilothouse that is started here
    compare_servers.py --workers 1 --workers 2            the two shapes of it
    compare_servers.py --kube-apiserver P --etcd P        kube-apiserver, started here from these programs, against it
    compare_servers.py A.kubeconfig B.kubeconfig …        servers that run already, against it
    --no-pilothouse                                       start no Pilothouse
    --pid N[,N…] (once per kubeconfig)                    the server's processes, for processor time and memory
    --rounds N                                            turns of each load on each server
    --only TEXT (repeatable)                              only loads whose names contain the text
    --quick                                               a tenth of the load

Processor time is that of all processes of a server: workers with their store, kube-apiserver with its etcd. It depends
on other work of the machine much less than rates do. A ratio compares with the first server; above 1 this server is
better. It is the median of the rounds, with the lowest and the highest.

Kubeconfigs need a token. The load generator and the servers share the machine; run nothing else beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from servers import loads
from servers.bodies import config_map, pod
from servers.h2load import ensure_h2load
from servers.loads import Measurement
from servers.local import local_pilothouse
from servers.processes import memory
from servers.target import Target
from servers.upstream import kube_apiserver

Figures = dict[str, float]
Load = Callable[[Target], Coroutine[Any, Any, Measurement]]
NOTHING = "?labelSelector=app%3Dnobody"


def rows(scale: int) -> dict[str, Load]:
    gets, creates, lists = 40_000 // scale, 10_000 // scale, max(100 // scale, 10)
    a_map, a_pod = config_map("c-", generate=True), pod("c-", generate=True)
    return {  # lists come before creates, which add Pods
        "GET ConfigMap of 1 kB, HTTP/1.1": lambda target: loads.get_one(target, requests=gets, http1=True),
        "GET ConfigMap of 1 kB, HTTP/2": lambda target: loads.get_one(target, requests=gets, http1=False),
        "LIST all Pods": lambda target: loads.list_pods(target, requests=lists),
        "LIST Pods by a label that none has": lambda target: loads.list_pods(
            target, requests=4_000 // scale, clients=32, query=NOTHING
        ),
        "event to one of 200 watchers": lambda target: loads.watch_fan_out(
            target, watchers=200, events=max(500 // scale, 50)
        ),
        "create ConfigMap of 1 kB": lambda target: loads.create(target, loads.CONFIG_MAPS, a_map, requests=creates),
        "update ConfigMap of 1 kB": lambda target: loads.update(target, requests=creates),
        "create Pod": lambda target: loads.create(target, loads.PODS, a_pod, requests=creates // 2),
    }


def measure(targets: list[Target], chosen: dict[str, Load], *, rounds: int) -> dict[str, list[list[Measurement]]]:
    """Return for each load the rounds of each target."""
    results: dict[str, list[list[Measurement]]] = {}
    for name, load in chosen.items():
        results[name] = [[] for _ in targets]
        for number in range(rounds):
            for target, measured in zip(targets, results[name], strict=True):
                print(f"  {name}: {target.name}, round {number + 1} ...", file=sys.stderr)
                measured.append(asyncio.run(load(target)))
    return results


def report(targets: list[Target], results: dict[str, list[list[Measurement]]]) -> None:
    heads = [targets[0].name, *(f"{target.name} | ratio" for target in targets[1:])]
    tables: tuple[tuple[str, Callable[[Measurement], float | None]], ...] = (
        ("processor time of all processes (µs per operation)", lambda measured: measured.microseconds),
        ("rate (1/s)", lambda measured: measured.rate),
    )
    for title, value in tables:
        print(f"| {title} | " + " | ".join(heads) + " |")
        print("|---" * (2 * len(targets)) + "|")
        for name, of_targets in results.items():
            reference, *others = [[value(each) for each in measured] for measured in of_targets]
            cells = [_figure(reference)]
            for figures in others:
                better = (figures, reference) if title.startswith("rate") else (reference, figures)
                cells += [_figure(figures), _ratio(*better)]
            print(f"| {name} | " + " | ".join(cells) + " |")
        print()
    print("load of the machine in the last 1, 5 and 15 minutes:", *(f"{load:.1f}" for load in os.getloadavg()))


def _figure(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return _short(median(known)) if known else "–"


def _short(value: float) -> str:
    return f"{value:,.3g}" if value < 100 else f"{value:,.0f}"


def _ratio(above: list[float | None], below: list[float | None]) -> str:
    ratios = [a / b for a, b in zip(above, below, strict=True) if a and b]
    return f"**{median(ratios):.2f}** ({min(ratios):.2f}–{max(ratios):.2f})" if ratios else "–"


def print_table(results: list[tuple[str, Figures]]) -> None:
    names = [name for name, _ in results]
    print("| | " + " | ".join(names) + (" | ratio |" if len(results) == 2 else " |"))
    print("|---" * (len(results) + 1 + (len(results) == 2)) + "|")
    for row in results[-1][1]:
        values = [figures.get(row) for _, figures in results]
        cells = ["–" if value is None else _short(value) for value in values]
        if len(values) == 2:
            cells.append(f"{values[1] / values[0]:.2f}×" if values[0] and values[1] else "–")
        print(f"| {row} | " + " | ".join(cells) + " |")


def started(stack: ExitStack, options: argparse.Namespace) -> list[Target]:
    """Return the servers, the reference first, and print how long the started ones took."""
    targets: list[Target] = []
    for number, path in enumerate(options.kubeconfigs):
        pids = [int(pid) for pid in options.pid[number].split(",")] if number < len(options.pid) else []
        target = Target.from_kubeconfig(path, pid=pids[0] if pids else None)
        targets.append(replace(target, others=tuple(pids[1:])))
    if options.kube_apiserver:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = kube_apiserver(folder, options.kube_apiserver, options.etcd)
        targets.append(_started(*stack.enter_context(server)))
    for workers in [] if options.no_pilothouse else options.workers or ["1"]:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        target, ready = stack.enter_context(local_pilothouse(folder, f"--workers={workers}"))
        targets.append(_started(replace(target, name=f"pilothouse, {workers} worker(s)"), ready))
    return targets


def _started(target: Target, ready: float) -> Target:
    print(f"{target.name}: ready after {ready:.2f} s, {_memory(target):.0f} MB")
    return target


def _memory(target: Target) -> float:
    return sum(map(memory, (target.pid, *target.others))) if target.pid else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kubeconfigs", nargs="*", type=Path)
    parser.add_argument("--pid", action="append", default=[])
    parser.add_argument("--kube-apiserver", type=Path)
    parser.add_argument("--etcd", type=Path)
    parser.add_argument("--workers", action="append")
    parser.add_argument("--no-pilothouse", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.kube_apiserver and not options.etcd:
        parser.error("--kube-apiserver also needs --etcd")
    ensure_h2load()
    scale = 10 if options.quick else 1
    chosen = {n: load for n, load in rows(scale).items() if not options.only or any(t in n for t in options.only)}
    with ExitStack() as stack:
        targets = started(stack, options)
        if any("LIST" in name for name in chosen):
            for target in targets:
                print(f"  {5_000 // scale} Pods: {target.name} ...", file=sys.stderr)
                asyncio.run(loads.fill_with_pods(target, upto=5_000 // scale))
        report(targets, measure(targets, chosen, rounds=options.rounds))
        for target in targets:
            if target.pid:
                print(f"{target.name}: {_memory(target):.0f} MB after the loads")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    main()
