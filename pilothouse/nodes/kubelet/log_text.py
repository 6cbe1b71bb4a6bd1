"""Log text of a container: from its behaviour, or from the output of its command.

Each line has its time relative to the container start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.nodes.containers.budget import Cause, Killed, Limits
from pilothouse.nodes.containers.container import ArgumentsTooLong, expand
from pilothouse.nodes.containers.process import MeteredOutput, NoInput, Process
from pilothouse.nodes.containers.shell import CommandNotFound, run_command
from pilothouse.nodes.containers.words import NotSupported
from pilothouse.nodes.kubelet.host import Host
from pilothouse.nodes.pods.world import Exceeded

STDOUT, STDERR = "Stdout", "Stderr"
_MAX_LINES: Final = 10_000
_MAX_BYTES: Final = 1 << 20
_LONGEST_LINE: Final = 64 * 1024
_LIMITS: Final = Limits(written=64 << 20, wall_seconds=30.0)


@dataclass(frozen=True, slots=True)
class LogLine:
    after: float
    """Seconds since the container start."""
    text: bytes
    stream: str = STDOUT


async def log_lines(host: Host, pod: Json, spec: Json) -> Sequence[LogLine]:
    """Return the whole log of a run. Behaviour precedes command output."""
    logs = host.behavior(pod, spec["name"]).logs
    if logs is not None:
        async with host.machine.turn():
            return [LogLine(0.0, line) for line in told_lines(logs)]
    words = [*(spec.get("command") or ()), *(spec.get("args") or ())]
    written = await _written(host, pod, spec, words) if words else None
    return written if written is not None else [LogLine(0.0, _greeting(pod, spec))]


def told_lines(logs: str) -> list[bytes]:
    """Return the last lines of a configured log."""
    return logs[-_MAX_BYTES:].encode().splitlines()[-_MAX_LINES:]


def _greeting(pod: Json, spec: Json) -> bytes:
    image = spec.get("image") or ""
    return f"container {spec['name']} ({image}) of pod {namespace_of(pod)}/{name_of(pod)} is simulated".encode()


async def _written(host: Host, pod: Json, spec: Json, words: list[str]) -> Sequence[LogLine] | None:
    """Run the command in virtual time, and return its output; None for unknown programs.

    A command that exceeds its budget ends the container.
    """
    recorder = _Recorder()
    try:
        async with host.machine.process(_LIMITS) as budget:
            objects = await host.objects_for(pod, spec, budget)
            async with host.containers.start(pod, spec, objects, budget) as container:
                stdout, stderr = (MeteredOutput(recorder.output(stream), budget) for stream in (STDOUT, STDERR))
                expanded = []
                for word in words:
                    await budget.spend(data=len(word), steps=0)
                    expanded.append(expand(word, container.environment))
                await run_command(Process(expanded, container, NoInput(), stdout, stderr, recorder.sleep, budget))
    except CommandNotFound:
        return None
    except NotSupported:  # the output so far is valid but incomplete
        return recorder.finished() or None
    except ArgumentsTooLong:
        return []
    except Killed as killed:
        if killed.cause is not Cause.END:
            host.ended(pod, spec["name"], Exceeded(recorder.now, killed.cause is Cause.MEMORY))
    return recorder.finished()


class _Recorder:
    """Keeps the last lines with their times, like a rotated log."""

    def __init__(self) -> None:
        self.now = 0.0
        self._lines: deque[LogLine] = deque()
        self._bytes = 0
        self._open: dict[str, bytearray] = {STDOUT: bytearray(), STDERR: bytearray()}

    def output(self, stream: str) -> _RecordedOutput:
        return _RecordedOutput(self, stream)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    def write(self, stream: str, data: bytes) -> None:
        rest = self._open[stream]
        first, *others = data.split(b"\n")
        rest += first
        if others:
            *lines, last = others
            for line in (bytes(rest), *lines[-_MAX_LINES:]):
                self._add(line, stream)
            rest[:] = last
        if len(rest) > _LONGEST_LINE:
            self._add(bytes(rest), stream)
            rest.clear()

    def _add(self, text: bytes, stream: str) -> None:
        self._lines.append(LogLine(self.now, text, stream))
        self._bytes += len(text)
        while len(self._lines) > _MAX_LINES or self._bytes > _MAX_BYTES:
            self._bytes -= len(self._lines.popleft().text)

    def finished(self) -> list[LogLine]:
        for stream, text in self._open.items():
            if text:
                self._add(bytes(text), stream)
        return [*self._lines]


@dataclass(frozen=True, slots=True)
class _RecordedOutput:
    recorder: _Recorder
    stream: str

    async def write(self, data: bytes) -> None:
        self.recorder.write(self.stream, data)
