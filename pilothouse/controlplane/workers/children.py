"""Child processes of a single-threaded process, forked with all imports loaded, and the pipe of their status
messages."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pilothouse.machinery.dataclass import dataclass

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)


@dataclass(frozen=True, slots=True)
class Child:
    name: str
    pid: int
    started: float

    def signal(self, number: signal.Signals) -> None:
        """Send a signal. The pid of an unreaped child is not reused, so no other process can receive the signal."""
        os.kill(self.pid, number)

    @property
    def lived(self) -> float:
        return time.monotonic() - self.started


def fork(name: str, work: Callable[[], None]) -> Child:
    """Run `work` in a child process. The child exits with code 0, or with 1 if `work` raises."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Child(name, pid, time.monotonic())
    code = 1
    try:
        # Terminal signals reach only the supervisor, which forwards them.
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        with suppress(OSError):
            Path("/proc/self/comm").write_text(f"ph {name}", encoding="utf-8")
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended() -> list[tuple[int, str]]:
    """Return (pid, description of the exit) of each child that ended since the last call."""
    exits: list[tuple[int, str]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return exits
        if not pid:
            return exits
        code = os.waitstatus_to_exitcode(status)
        exits.append((pid, f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"))


class StatusPipe:
    """Pipe shared by all children. A message is one line, written atomically, so that lines never interleave."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._rest = b""

    def fileno(self) -> int:
        return self._reading

    def say(self, **message: Any) -> None:
        os.write(self._writing, json.dumps(message).encode() + b"\n")

    def heard(self) -> list[dict[str, Any]]:
        """Return the messages since the last call."""
        try:
            while more := os.read(self._reading, 1 << 16):
                self._rest += more
        except BlockingIOError:
            pass
        *lines, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in lines]
