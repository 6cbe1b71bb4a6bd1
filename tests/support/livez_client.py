"""A client that asks `/livez` again and again, in a process of its own, and says how long it had to wait at most.

    livez_client.py HOST PORT CA_FILE TOKEN PID

For every line on standard input it writes the longest wait since the last one, in seconds of the reference machine.
Time for which the machine, and not the server, kept the client waiting does not count: threads of the server that were
ready to run and got no processor, and a processor that is slower than the one for which limits were set.
"""

from __future__ import annotations

import http.client
import os
import select
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import fmean

from machine_speed import slowness
from patience import PATIENCE

_PAUSE = 0.001
_SELF = Path("/proc/self/schedstat")


class LivezClient:
    """Runs until `close`."""

    def __init__(self, host: str, port: int, *, ca_file: str, token: str, pid: int | None = None) -> None:
        command = [sys.executable, __file__, host, str(port), ca_file, token, str(pid or os.getpid())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.longest_wait()  # returns when it has been served once

    def longest_wait(self) -> float:
        """In seconds, since it was last asked."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the client was not served, and ended"
        return float(answer)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def livez_client(host: str, port: int, *, ca_file: str, token: str, pid: int | None) -> Iterator[LivezClient]:
    client = LivezClient(host, port, ca_file=ca_file, token=token, pid=pid)
    try:
        yield client
    finally:
        client.close()


def _main(host: str, port: int, ca_file: str, token: str, pid: int) -> None:
    context = ssl.create_default_context(cafile=ca_file)
    connection = http.client.HTTPSConnection(host, port, context=context, timeout=PATIENCE)
    longest, speeds = 0.0, []
    while True:
        longest = max(longest, _wait(connection, token, pid))
        speeds.append(slowness())
        if select.select([sys.stdin], [], [], _PAUSE)[0]:
            if not sys.stdin.readline():
                return
            print(longest / fmean(speeds), flush=True)
            longest, speeds = 0.0, []


def _wait(connection: http.client.HTTPSConnection, token: str, pid: int) -> float:
    before, start = _threads(pid), time.monotonic()
    connection.request("GET", "/livez", headers={"Authorization": f"Bearer {token}"})
    connection.getresponse().read()
    waited, after = time.monotonic() - start, _threads(pid)
    ran, kept = (
        sum(times[at] - before.get(thread, (0, 0))[at] for thread, times in after.items()) / 1e9 for at in (0, 1)
    )
    # Threads are kept from running at the same time, too, or while another one runs. The work of the server is the
    # least that the client waited for.
    return max(min(waited, ran), waited - kept)


def _threads(pid: int) -> dict[Path, tuple[int, int]]:
    """Return the nanoseconds for which each thread of the server and of this process ran, and was kept from running."""
    found = {}
    for thread in (*Path(f"/proc/{pid}/task").glob("*/schedstat"), _SELF):
        with suppress(OSError, ValueError, IndexError):  # the thread has ended, or the system does not say
            ran, kept = thread.read_text().split()[:2]
            found[thread] = int(ran), int(kept)
    return found


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]))
