"""One bash for a page, so that `cd`, `export` and jobs last from one command to the next."""

from __future__ import annotations

import base64
import contextlib
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path

_END = "the-command-has-ended"


class CommandTookTooLong(Exception):
    """The message is what had been printed until then."""


class Shell:
    """Commands run in the page's folder, without a terminal, and read nothing."""

    def __init__(self, folder: Path, notes: Path, environment: dict[str, str]) -> None:
        self._notes = notes
        self._jobs: list[Path] = []
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
        )
        self.run("set -m", within=10)  # jobs are interrupted as at a prompt

    def run(self, command: str, *, within: float) -> tuple[int, str]:
        """Return the exit code and all that was printed. Raises CommandTookTooLong."""
        script = self._notes / "command.sh"
        script.write_text(command + "\n")
        assert self._bash.stdin
        self._bash.stdin.write(f"source {script} < /dev/null\nprintf '\\n{_END} %d\\n' $?\n".encode())
        self._bash.stdin.flush()
        output, _, code = self._until_it_ended(within).rpartition(f"\n{_END} ")
        return int(code), output

    def begin(self, command: str) -> Path:
        """Start a command beside those that follow, and return the file in which its output appears."""
        log = self._notes / f"job-{len(self._jobs)}.log"
        log.touch()
        self._jobs.append(log)
        script = log.with_suffix(".sh")
        script.write_text(command.removesuffix("&") + "\n")
        self.run(f"source {script} > {log} 2>&1 &", within=10)
        return log

    def runs(self) -> bool:
        """Whether the command that was begun last still runs."""
        return self.run("kill -0 $! 2> /dev/null", within=10)[0] == 0

    def interrupt(self) -> None:
        """Do what Ctrl-C does to the command that was begun last, and wait until it has ended."""
        self.run("kill -INT -- -$!; wait $!", within=30)

    def environment(self) -> dict[str, str]:
        """Return what has been exported."""
        _, output = self.run("env -0 | base64 -w0", within=10)
        pairs = base64.b64decode(output).decode().split("\0")
        return dict(pair.split("=", 1) for pair in pairs if "=" in pair)

    def close(self) -> None:
        """End all that was begun, and the shell."""
        with contextlib.suppress(CommandTookTooLong, OSError, ValueError):
            self.run("for job in $(jobs -p); do kill -TERM -- -$job; done 2> /dev/null; wait", within=15)
        self._bash.kill()
        self._bash.wait()

    def _until_it_ended(self, within: float) -> str:
        assert self._bash.stdout
        read, deadline = b"", time.monotonic() + within
        with selectors.DefaultSelector() as selector:
            selector.register(self._bash.stdout, selectors.EVENT_READ)
            while not (read.endswith(b"\n") and f"\n{_END} ".encode() in read):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self._bash.send_signal(signal.SIGINT)
                    raise CommandTookTooLong(read.decode(errors="replace"))
                chunk = os.read(self._bash.stdout.fileno(), 65536)
                if not chunk:
                    raise CommandTookTooLong("the shell has ended: " + read.decode(errors="replace"))
                read += chunk
        return read.decode(errors="replace")
