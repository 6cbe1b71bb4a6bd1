"""A command that goes on until a signal ends it, such as `pilothouse dev`, and what it prints."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from patience import PATIENCE


class RunningCommand:
    """For a `with` block. The command has a process group of its own, as a shell gives one to each command line."""

    def __init__(self, command: Sequence[str] | str, folder: Path, output: Path, env: Mapping[str, str]) -> None:
        self._output = output
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=env,
                stdout=file,
                stderr=subprocess.STDOUT,
                shell=isinstance(command, str),
                process_group=0,
            )

    def printed(self, pattern: str, times: int = 1) -> str:
        """Return the group that the pattern's last match has, once it has matched that often."""
        self.until(lambda: len(re.findall(pattern, self.text)) >= times)
        found: str = re.findall(pattern, self.text)[-1]
        return found

    def until(self, condition: Callable[[], object]) -> None:
        """Return when it holds; fail when the command ends before."""
        last = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, f"it ended with {self.process.returncode}: {self.text}"
            assert time.monotonic() < last, f"it takes too long: {self.text}"
            time.sleep(0.1)

    @property
    def text(self) -> str:
        return self._output.read_text()

    def interrupt(self) -> int:
        """Press Ctrl-C, and return the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(PATIENCE)

    def __enter__(self) -> RunningCommand:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.interrupt()
