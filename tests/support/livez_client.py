"""A client that asks `/livez` again and again, in a process of its own, and says how long it had to wait at most.

    livez_client.py HOST PORT CA_FILE TOKEN PID

For every line on standard input it writes the longest wait since the last one, in seconds. What it was kept waiting by
the machine, and not by the server, does not count: the time for which a thread of the server, or this process, was
ready to run and got no processor, as far as the system knows it.
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
from contextlib import contextmanager
from pathlib import Path

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
    longest = 0.0
    while True:
        longest = max(longest, _wait(connection, token, pid))
        if select.select([sys.stdin], [], [], _PAUSE)[0]:
            if not sys.stdin.readline():
                return
            print(longest, flush=True)
            longest = 0.0


def _wait(connection: http.client.HTTPSConnection, token: str, pid: int) -> float:
    before, start = _kept_from_running(pid), time.monotonic()
    connection.request("GET", "/livez", headers={"Authorization": f"Bearer {token}"})
    connection.getresponse().read()
    waited, after = time.monotonic() - start, _kept_from_running(pid)
    # Threads are kept from running at the same time, too: of the server's only the one that was kept longest counts.
    server = max((seconds - before.get(thread, 0.0) for thread, seconds in after.items() if thread != _SELF), default=0)
    return waited - server - (after.get(_SELF, 0.0) - before.get(_SELF, 0.0))


def _kept_from_running(pid: int) -> dict[Path, float]:
    """Seconds, by thread."""
    threads = [*Path(f"/proc/{pid}/task").glob("*/schedstat"), _SELF]
    return {thread: _delay(thread) / 1e9 for thread in threads}


def _delay(schedstat: Path) -> int:
    """Nanoseconds; 0 where the system does not say, or the thread has ended."""
    try:
        return int(schedstat.read_text().split()[1])
    except (OSError, IndexError):
        return 0


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]))
