"""What a container has logged: as its behaviour says, or what its own command would write.

Lines have the time at which they were written, counted from the container's start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.nodes.containers.container import Container, fresh_container
from pilothouse.nodes.containers.given import Objects
from pilothouse.nodes.containers.process import NoInput, NoRoom, Process
from pilothouse.nodes.containers.shell import CommandNotFound, run_command
from pilothouse.nodes.containers.words import NotSupported

STDOUT, STDERR = "Stdout", "Stderr"
_MAX_LINES: Final = 10_000


@dataclass(frozen=True, slots=True)
class LogLine:
    after: float
    """Seconds since the container's start."""
    text: bytes
    stream: str = STDOUT


async def log_lines(pod: Json, spec: Json, logs: str | None, objects: Objects) -> Sequence[LogLine]:
    """Return what the container writes in its life. `logs` are those of its behaviour, if it has any."""
    if logs is not None:
        return [LogLine(0.0, line.encode()) for line in logs.splitlines()]
    words = [*(spec.get("command") or ()), *(spec.get("args") or ())]
    written = await _written(fresh_container(pod, spec, objects), words) if words else None
    return written if written is not None else [LogLine(0.0, _greeting(pod, spec))]


def _greeting(pod: Json, spec: Json) -> bytes:
    image = spec.get("image") or ""
    return f"container {spec['name']} ({image}) of pod {namespace_of(pod)}/{name_of(pod)} is simulated".encode()


async def _written(container: Container, words: list[str]) -> list[LogLine] | None:
    """Return what the command writes; None for a program that there is not here. Time passes for it at once."""
    recorder = _Recorder()
    process = Process(words, container, NoInput(), recorder.output(STDOUT), recorder.output(STDERR), recorder.sleep)
    try:
        await run_command(process)
    except CommandNotFound:
        return None
    except NotSupported:  # what was written until then is true, but not all
        return recorder.finished() or None
    except NoRoom:
        pass
    return recorder.finished()


class _Recorder:
    """Keeps lines with the time at which they end."""

    def __init__(self) -> None:
        self._now = 0.0
        self._lines: list[LogLine] = []
        self._open: dict[str, bytes] = {STDOUT: b"", STDERR: b""}

    def output(self, stream: str) -> _RecordedOutput:
        return _RecordedOutput(self, stream)

    async def sleep(self, seconds: float) -> None:
        self._now += seconds

    def write(self, stream: str, data: bytes) -> None:
        *lines, self._open[stream] = (self._open[stream] + data).split(b"\n")
        self._lines += (LogLine(self._now, line, stream) for line in lines)
        if len(self._lines) > _MAX_LINES:
            raise NoRoom

    def finished(self) -> list[LogLine]:
        rest = (LogLine(self._now, text, stream) for stream, text in self._open.items() if text)
        return [*self._lines, *rest]


@dataclass(frozen=True, slots=True)
class _RecordedOutput:
    recorder: _Recorder
    stream: str

    async def write(self, data: bytes) -> None:
        self.recorder.write(self.stream, data)
