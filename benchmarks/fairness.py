"""A flood from one user beside the requests of another, with fair queuing and without.

    fairness.py               with 64 connections that ask as fast as they can
    fairness.py --clients N   with so many

The quiet user asks one thing at a time. Both ask for the same kind of object in the same priority level.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).parent))

from servers.connection import Connection
from servers.h2load import ensure_h2load
from servers.local import local_pilothouse
from servers.target import Target

MAPS = "/api/v1/namespaces/default/configmaps"
FLOOD, QUIET = "flood-token", "quiet-token"
ASKED = 400


async def latencies(target: Target, method: str) -> list[float]:
    """Milliseconds of each request of the quiet user."""
    taken = []
    async with Connection(target) as connection:
        for number in range(ASKED):
            body = b'{"metadata":{"generateName":"q-"}}' if method == "POST" else b""
            begun = time.perf_counter()
            answer = await connection.call(method, MAPS if method == "POST" else f"{MAPS}/one", body)
            taken.append((time.perf_counter() - begun) * 1000)
            assert answer.status in (200, 201), (number, answer.body)
    return taken


def flooding(target: Target, clients: int) -> subprocess.Popen[bytes]:
    command = ["h2load", "-D", "600", "-c", str(clients), "-t", "1", "-m", "1"]
    command += ["-H", f"authorization: Bearer {FLOOD}", f"{target.url}{MAPS}/one"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(clients: int, *flags: str) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        users = Path(folder) / "users.csv"
        users.write_text(f"{FLOOD},flood,1\n{QUIET},quiet,2\nbenchmark-token,benchmark,3,system:masters\n")
        given = [f"--token-auth-file={users}", "--authorization-mode=AlwaysAllow", "--controllers=-*", *flags]
        with local_pilothouse(Path(folder), *given) as (target, _):
            quiet = replace(target, token=QUIET)
            asyncio.run(_make_one(quiet))
            results = {f"{method} alone": asyncio.run(latencies(quiet, method)) for method in ("GET", "POST")}
            flood = flooding(target, clients)
            try:
                time.sleep(1)
                for method in ("GET", "POST"):
                    results[f"{method} beside the flood"] = asyncio.run(latencies(quiet, method))
            finally:
                flood.kill()
                flood.wait()
    return results


async def _make_one(target: Target) -> None:
    async with Connection(target) as connection:
        await connection.call("POST", MAPS, b'{"metadata":{"name":"one"}}')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    options = parser.parse_args()
    ensure_h2load()
    fair = measure(options.clients)
    plain = measure(options.clients, "--enable-priority-and-fairness=false")
    print("| median and 99th percentile (ms) | fair queuing | limits only |")
    print("|---|---|---|")
    for row in fair:
        cells = [f"{median(each[row]):.2f} / {quantiles(each[row], n=100)[-1]:.2f}" for each in (fair, plain)]
        print(f"| {row} | {' | '.join(cells)} |")
    for method in ("GET", "POST"):
        ratios = [
            median(each[f"{method} beside the flood"]) / median(each[f"{method} alone"]) for each in (fair, plain)
        ]
        print(f"| {method}, times slower | {ratios[0]:.1f}× | {ratios[1]:.1f}× |")


if __name__ == "__main__":
    main()
