"""Power cuts of a real process: it runs once under strace, and what is checked is what its disk may hold afterwards,
for power cuts at many moments of the run."""

from __future__ import annotations

import random
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from traced_calls import trace
from traced_disk import Disk, moments

from pilothouse.apiserver.storage.errors import StorageError

Check: TypeAlias = Callable[[Path, list[bytes]], Awaitable[None]]
"""Raises for a directory that is not as it must be after the process has said so much."""

_FAULTS = (AssertionError, KeyError, StorageError, sqlite3.Error, OSError)


@dataclass
class PowerCuts:
    """How many were tried, and what was wrong after them."""

    tried: int = 0
    faults: list[str] = field(default_factory=list)


class RecordedProcess:
    """The calls of a Python process that wrote below `root`, which its command names as `{root}`."""

    def __init__(self, scratch: Path, *command: str) -> None:
        self.root = scratch / "disk"
        self.root.mkdir(parents=True)
        self._image = scratch / "image"
        self._calls = trace([sys.executable, *(word.format(root=self.root) for word in command)], scratch / "trace")

    async def cut(
        self,
        check: Check,
        *,
        share: float,
        each: int = 1,
        seed: int = 1,
        without_syncs: Callable[[Path], bool] = lambda path: False,
        until_fault: bool = False,
    ) -> PowerCuts:
        """Cut the power at all moments before the process speaks and at a share of the others, `each` times in each
        of several ways. `without_syncs` names files whose syncs count for nothing."""
        chance = random.Random(seed)
        disk = Disk(self.root, ignore_syncs_of=without_syncs)
        done = PowerCuts()
        for line, said in moments(self._calls, disk):
            for image in disk.images(chance, each) if not said or chance.random() < share else ():
                done.tried += 1
                image.write(self._image)
                try:
                    await check(self._image, said)
                except _FAULTS as error:
                    done.faults.append(f"line {line}, {image.story}: {type(error).__name__}: {error}"[:400])
            if until_fault and done.faults:
                break
        return done
