"""h2load, the load generator of nghttp2: installed where it is missing, run, and read."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from servers.target import Target


@dataclass(frozen=True, slots=True)
class Load:
    """The outcome of one run. A run with failed requests is no result."""

    requests_per_second: float
    median_ms: float


@dataclass(frozen=True, slots=True)
class Pace:
    """So many requests a second of all clients together, instead of as many as there can be."""

    rate: float
    log: Path
    """Gets a line for each request, which ends with how many microseconds it took."""

    def latencies(self) -> list[float]:
        """In milliseconds, shortest first."""
        return sorted(int(line.rsplit("\t", 1)[1]) / 1000 for line in self.log.read_text().splitlines())


def ensure_h2load() -> None:
    if shutil.which("h2load") is None:
        print("installing h2load (Debian package nghttp2-client) ...")
        subprocess.run(["apt-get", "install", "-y", "-qq", "nghttp2-client"], check=True, stdout=subprocess.DEVNULL)


def h2load(
    target: Target,
    path: str,
    *,
    requests: int,
    clients: int = 32,
    body: Path | None = None,
    http1: bool = False,
    paced: Pace | None = None,
) -> Load:
    command = ["h2load", "-n", str(requests), "-c", str(clients), "-t", "1", "-m", "1"]
    command += ["-H", f"authorization: Bearer {target.token}", "-H", "content-type: application/json"]
    command += ["--h1"] if http1 else []
    command += ["-d", str(body)] if body else []
    command += [f"--rps={paced.rate / clients}", f"--log-file={paced.log}"] if paced else []
    done = subprocess.run([*command, target.url + path], capture_output=True, text=True, check=True)
    return _read(done.stdout, requests)


def _read(text: str, requests: int) -> Load:
    rate = re.search(r"finished in [\d.]+\w+, ([\d.]+) req/s", text)
    codes = re.search(r"status codes: (\d+) 2xx", text)
    times = re.search(r"time for request:\s+\S+\s+\S+\s+(\S+)", text)
    if rate is None or codes is None or int(codes[1]) != requests:
        raise RuntimeError(f"not every request succeeded:\n{text}")
    return Load(float(rate[1]), _milliseconds(times[1]) if times else 0.0)


def _milliseconds(text: str) -> float:
    for unit, factor in (("us", 1e-3), ("ms", 1.0), ("s", 1e3)):
        if text.endswith(unit):
            return float(text[: -len(unit)]) * factor
    raise ValueError(text)
