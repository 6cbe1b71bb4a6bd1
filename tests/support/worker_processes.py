"""A real `pilothouse serve --workers 2`, and the processes that it is made of."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from serving_process import ServeProcess

WORKERS = 2


class WorkersServer(ServeProcess):
    """All its processes end with `close`."""

    def __init__(self, data_dir: Path, *flags: str) -> None:
        super().__init__(data_dir, f"--workers={WORKERS}", *flags)

    def processes(self) -> dict[str, int]:
        """Return the pids of the children that live, by name: `store`, `worker 1`, …"""
        found: dict[str, int] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, rest = stat.read_text().partition(" (")[2].rpartition(") ")
            except OSError:  # it ended meanwhile
                continue
            state, parent = rest.split()[:2]
            if int(parent) == self.process.pid and state != "Z":
                found[name.removeprefix("ph ")] = int(stat.parent.name)
        return found

    @staticmethod
    def lives(pid: int) -> bool:
        """Whether the process is there, and not just waiting for somebody to ask how it ended."""
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
        except OSError:
            return False

    def kill(self, name: str) -> int:
        """Return the pid that the process had."""
        pid = self.processes()[name]
        os.kill(pid, signal.SIGKILL)
        return pid
