"""Child processes of a process without threads: forked with all that is imported, so that they start at once."""

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
        """A child that was not waited for keeps its pid, so nobody else is hit."""
        os.kill(self.pid, number)

    @property
    def lived(self) -> float:
        return time.monotonic() - self.started


def fork(name: str, work: Callable[[], None]) -> Child:
    """Do the work in a child process, which ends with it: with code 0, or 1 where the work raises."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Child(name, pid, time.monotonic())
    code = 1
    try:
        # Signals from the terminal go to the supervisor alone, which decides what they mean for its children.
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        _show(name)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _show(name: str) -> None:
    """Name the process in the lists of ps and top, where the system lets it."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(f"ph {name}", encoding="utf-8")


def ended() -> list[tuple[int, str]]:
    """Return the pid of each child that has ended since the last call, and how it ended."""
    found: list[tuple[int, str]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if not pid:
            return found
        code = os.waitstatus_to_exitcode(status)
        found.append((pid, f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"))


class StatusPipe:
    """One for all children. What one says is a line, written at once, so that lines are never mixed."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._rest = b""

    def fileno(self) -> int:
        return self._reading

    def say(self, **said: Any) -> None:
        os.write(self._writing, json.dumps(said).encode() + b"\n")

    def heard(self) -> list[dict[str, Any]]:
        """Return what was said since the last call."""
        try:
            while more := os.read(self._reading, 1 << 16):
                self._rest += more
        except BlockingIOError:
            pass
        *lines, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in lines]
