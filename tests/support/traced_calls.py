"""What a process asks of its disk and what it says, in one order: a trace by strace of the system calls that change
files, in which writes to standard output are the acknowledgements."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

NO_STRACE: Final = "this machine has no strace, or this user may not trace"

_CALLS = "openat,mkdir,pwrite64,write,fsync,fdatasync,ftruncate,unlink,unlinkat,rename"
FOREIGN: Final = "creat,pwritev,pwritev2,writev,renameat,renameat2,link,linkat,symlink,fallocate,truncate,rmdir"
"""Calls whose effect on files is not modelled: a trace that has one for a file in question is refused."""

_WHOLE = re.compile(r"(?P<thread>\d+) +(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
_BEGUN = re.compile(r"(?P<thread>\d+) +(?P<text>.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"(?P<thread>\d+) +<\.\.\. \w+ resumed>(?P<text>.*)$")
_FILE = re.compile(r"(?:\d+|AT_FDCWD)<(?P<path>[^>]*)>")


@dataclass(frozen=True, slots=True)
class TracedCall:
    """One system call that succeeded. `begun` and `ended` are lines of the trace."""

    name: str
    arguments: tuple[str, ...]
    result: int
    begun: int
    ended: int

    @property
    def is_sync(self) -> bool:
        return self.name in ("fsync", "fdatasync")

    def descriptor(self) -> int:
        return int(self.arguments[0].partition("<")[0])

    def file(self, position: int = 0) -> Path:
        """The path that strace found for a descriptor; that of a file without a name is nowhere."""
        match = _FILE.match(self.arguments[position])
        assert match is not None, self
        return Path() if self.arguments[position].endswith("(deleted)") else Path(_bytes(match["path"]).decode())

    def path(self, position: int = 0) -> Path:
        """The path in an argument, which a call of the *at family has behind a directory."""
        path = self.bytes(position).decode()
        directory = _FILE.match(self.arguments[position - 1]) if position else None
        return Path(_bytes(directory["path"]).decode(), path) if directory else Path(path)

    def bytes(self, position: int) -> bytes:
        return _bytes(self.arguments[position].strip('"'))

    def number(self, position: int) -> int:
        return int(self.arguments[position])


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


@cache
def can_trace() -> bool:
    strace = shutil.which("strace")
    return strace is not None and subprocess.run([strace, "true"], capture_output=True, check=False).returncode == 0


def trace(command: Sequence[str], output: Path, *, timeout: float = 100) -> list[TracedCall]:
    """Run the command to its end. Return its calls in the order in which they began."""
    strace = ["strace", "--seccomp-bpf", "-f", "-y", "-xx", "-s", "4000000", "-e", "signal=none", "-o", str(output)]
    kinds = ["-e", f"trace={_CALLS},{FOREIGN}"]
    done = subprocess.run([*strace, *kinds, *command], capture_output=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr.decode()
    with output.open() as lines:
        return sorted(_calls(lines), key=lambda call: call.begun)


def _calls(lines: Iterator[str]) -> Iterator[TracedCall]:
    begun: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines):
        start, text = number, line
        if match := _BEGUN.match(line):
            begun[match["thread"]] = number, match["text"]
            continue
        if match := _RESUMED.match(line):
            start, first = begun.pop(match["thread"])
            text = f"{match['thread']} {first}{match['text']}"
        if (match := _WHOLE.match(text)) and int(match["result"]) >= 0:
            arguments = tuple(match["arguments"].split(", "))
            yield TracedCall(match["name"], arguments, int(match["result"]), start, number)
