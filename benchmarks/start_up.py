"""How long `pilothouse serve` takes until it is ready, and what it then holds: on a new data directory and again.

    python benchmarks/start_up.py [--rounds 8] [--other 'sh start-others.sh {dir}' --url https://127.0.0.1:6443/readyz]

The first round compiles the modules that have no bytecode yet, and is not counted. Another server is started by a
command of yours, in which `{dir}` is a new folder; it is ready when the URL answers 200, and all that the command
started counts.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from servers.processes import memory, processor_seconds

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


def start_other(command: str, url: str, folder: str, *, rest: float = 0.0) -> Start:
    """The same of any server. It is killed with all that it started."""
    began = time.perf_counter()
    words = shlex.split(command.replace("{dir}", folder))
    with subprocess.Popen(
        words, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            while not _answers(url):
                assert process.poll() is None, f"{command} has ended"
                time.sleep(0.02)
            seconds, cpu = time.perf_counter() - began, processor_seconds(process.pid)
            time.sleep(rest)
            return Start(seconds, cpu, memory(process.pid))
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def _answers(url: str) -> bool:
    anybody = ssl._create_unverified_context()
    with suppress(OSError), urllib.request.urlopen(url, context=anybody, timeout=5):  # an error is no success
        return True
    return False


def report(what: str, starts: list[Start]) -> None:
    seconds = [each.seconds for each in starts]
    cpu, memory = min(each.cpu_seconds for each in starts), max(each.megabytes for each in starts)
    shown = f"best {min(seconds):.2f} s, median {statistics.median(seconds):.2f} s"
    print(f"{what:<20} {shown}, {cpu:.2f} s of one core, {memory:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description="How long a start takes, and what the server then holds.")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--other", default="", help="a command that starts another server")
    parser.add_argument("--url", default="https://127.0.0.1:6443/readyz", help="at which the other server is ready")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ours(folder, parsed.rounds)
        if parsed.other:
            starts = [start_other(parsed.other, parsed.url, f"{folder}/other-{n}") for n in range(parsed.rounds)]
            report("other, anew", starts)
            at_rest = start_other(parsed.other, parsed.url, f"{folder}/other-rest", rest=_REST)
            print(f"{'other, anew':<20} {at_rest.megabytes:.0f} MB {_REST:.0f} s later")


def ours(folder: str, rounds: int) -> None:
    start(f"{folder}/again")
    report("new data directory", [start(f"{folder}/{number}") for number in range(rounds)])
    report("again", [start(f"{folder}/again") for _ in range(rounds)])
    for what, data_dir in (("new data directory", f"{folder}/rest"), ("again", f"{folder}/rest")):
        print(f"{what:<20} {start(data_dir, rest=_REST).megabytes:.0f} MB {_REST:.0f} s later")


if __name__ == "__main__":
    main()
