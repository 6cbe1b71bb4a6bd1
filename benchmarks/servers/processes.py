"""What a server's processes have used: those that are named and their children."""

from __future__ import annotations

import os
import re
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Megabytes of the process and its children; what they share counts once."""
    found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) / 1000 + sum(map(memory, _children(pid)))


def processor_seconds(pid: int) -> float:
    """Of the process and the children that it has now."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / _TICKS + sum(map(processor_seconds, _children(pid)))


def _children(pid: int) -> list[int]:
    """Of all its threads, because any of them may have started one."""
    lists = (task.joinpath("children").read_text().split() for task in Path(f"/proc/{pid}/task").iterdir())
    return [int(child) for each in lists for child in each]
