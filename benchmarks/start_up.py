"""How long `pilothouse serve` takes until it is ready, and what it then holds: on a new data directory and again.

    python benchmarks/start_up.py [rounds]

The first round compiles the modules that have no bytecode yet, and is not counted.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

_PAGE_MB = 4096 / 1024**2
_TICKS_PER_SECOND = 100
_REST = 5.0  # by then every controller has its caches


@dataclass(frozen=True, slots=True)
class Start:
    seconds: float
    cpu_seconds: float
    megabytes: float


def start(data_dir: str, *, rest: float = 0.0) -> Start:
    """One server, from its start to its end. It is left alone for `rest` seconds before its memory is looked at."""
    command = [sys.executable, "-m", "pilothouse.cli.main", "serve", "--secure-port=0", f"--data-dir={data_dir}"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("export KUBECONFIG="):
                break
        seconds, proc = time.perf_counter() - began, Path(f"/proc/{process.pid}")
        times = proc.joinpath("stat").read_text().rsplit(")", 1)[1].split()
        time.sleep(rest)
        resident = int(proc.joinpath("statm").read_text().split()[1])
        process.terminate()
    return Start(seconds, (int(times[11]) + int(times[12])) / _TICKS_PER_SECOND, resident * _PAGE_MB)


def report(what: str, starts: list[Start]) -> None:
    seconds = [each.seconds for each in starts]
    cpu, memory = min(each.cpu_seconds for each in starts), max(each.megabytes for each in starts)
    shown = f"best {min(seconds):.2f} s, median {statistics.median(seconds):.2f} s"
    print(f"{what:<20} {shown}, {cpu:.2f} s of one core, {memory:.0f} MB")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    with tempfile.TemporaryDirectory() as folder:
        start(f"{folder}/again")
        report("new data directory", [start(f"{folder}/{number}") for number in range(rounds)])
        report("again", [start(f"{folder}/again") for _ in range(rounds)])
        for what, data_dir in (("new data directory", f"{folder}/rest"), ("again", f"{folder}/rest")):
            print(f"{what:<20} {start(data_dir, rest=_REST).megabytes:.0f} MB {_REST:.0f} s later")


if __name__ == "__main__":
    main()
