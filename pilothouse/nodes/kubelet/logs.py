"""/containerLogs: the log of the current or previous run of a container."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final

from pilothouse.apiserver.http import Request, Response
from pilothouse.machinery import server_time
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of, part, uid_of
from pilothouse.machinery.times import parse_time
from pilothouse.nodes.containers.container import spec_of
from pilothouse.nodes.kubelet.host import Host, container_status
from pilothouse.nodes.kubelet.log_text import LogLine, log_lines, told_lines

_TEXT: Final = [(b"content-type", b"text/plain")]
_WAITING: Final = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
    "RunContainerError": "no logs yet",
}
"""Waiting reason → message."""

ALL: Final = "All"
_SECOND: Final = 1.0
"""Statuses have whole seconds: an ended container may have written until the next second."""
_BATCH: Final = 500


async def container_log(host: Host, request: Request, namespace: str, name: str, container: str) -> Response:
    try:
        options = LogOptions.of(request)
    except ValueError:
        return Response(400, b'{"message": "Unable to decode query."}')
    pod = host.pods.get(namespace, name)
    if pod is None:
        return Response(404, f'pod "{name}" does not exist'.encode())
    spec = spec_of(pod, container)
    if spec is None:
        return Response(404, f'container "{container}" not found in pod "{name}"'.encode())
    log = await log_of(host, pod, spec, options)
    return Response(400, log.encode()) if isinstance(log, str) else Response(200, log, [*_TEXT])


async def log_of(host: Host, pod: Json, spec: Json, options: LogOptions) -> AsyncIterator[bytes] | str:
    """Return the log, or the reason why there is none."""
    container: str = spec["name"]
    run = _run_of(pod, container, options)
    if isinstance(run, str):
        return run
    lines = await log_lines(host, pod, spec)
    return LogReading(host, pod, container, options, run, lines).read()


def _run_of(pod: Json, container: str, options: LogOptions) -> Run | str:
    """Return the requested run, or the reason why there is none."""
    status = container_status(pod, container)
    state = (status.get("lastState") if options.previous else status.get("state")) or {}
    for described in (state.get("running"), state.get("terminated")):
        if described and (began := seconds_of(described.get("startedAt"))) is not None:
            return Run(began, seconds_of(described.get("finishedAt")))
    if options.previous:
        return f'previous terminated container "{container}" in pod "{name_of(pod)}" not found'
    if last := part(status, "lastState").get("terminated"):
        return Run(seconds_of(last.get("startedAt")) or 0.0, seconds_of(last.get("finishedAt")))
    reason = part(state, "waiting").get("reason") or "ContainerCreating"
    problem = _WAITING.get(reason, reason)
    return f'container "{container}" in pod "{name_of(pod)}" is waiting to start: {problem}'


@dataclass(frozen=True, slots=True)
class LogOptions:
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: float | None = None
    """Seconds since the epoch."""
    tail: int | None = None
    limit: int | None = None
    stream: str = ALL

    @classmethod
    def of(cls, request: Request) -> LogOptions:
        """Parse the query. Raises ValueError."""
        return cls(
            follow=request.param("follow") in ("true", "1"),
            previous=request.param("previous") in ("true", "1"),
            timestamps=request.param("timestamps") in ("true", "1"),
            since=_since(request),
            tail=_number(request.param("tailLines")),
            limit=_number(request.param("limitBytes")),
            stream=request.param("stream") or ALL,
        )


def _number(text: str) -> int | None:
    return int(text) if text else None


def _since(request: Request) -> float | None:
    if seconds := _number(request.param("sinceSeconds")):
        return server_time.wall() - seconds
    moment = parse_time(request.param("sinceTime")) if request.param("sinceTime") else None
    return None if moment is None else moment.timestamp()


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a container: start, and end if ended."""

    began: float
    ended: float | None


def seconds_of(text: str | None) -> float | None:
    moment = parse_time(text) if text else None
    return None if moment is None else moment.timestamp()


@dataclass(frozen=True, slots=True)
class LogReading:
    host: Host
    pod: Json
    container: str
    options: LogOptions
    run: Run
    lines: Sequence[LogLine]

    async def read(self) -> AsyncIterator[bytes]:
        remaining = self.options.limit
        async for piece in self._pieces():
            if remaining is not None:
                piece, remaining = piece[:remaining], remaining - len(piece)
            yield piece
            if remaining is not None and remaining <= 0:
                return

    async def _pieces(self) -> AsyncIterator[bytes]:
        now = server_time.wall() if self.run.ended is None else self.run.ended + _SECOND
        written = [line for line in self.lines if self.run.began + line.after <= now]
        chosen = [*filter(self._is_wanted, written)]
        if self.options.tail is not None:
            chosen = chosen[max(0, len(chosen) - self.options.tail) :]
        for begin in range(0, len(chosen), _BATCH):
            async with self.host.machine.turn():
                piece = b"".join(map(self._shown, chosen[begin : begin + _BATCH]))
            yield piece
        if self.options.follow and self.run.ended is None:
            async for line in self._further(len(written)):
                yield line

    async def _further(self, place: int) -> AsyncIterator[bytes]:
        """Yield new lines until the container ends."""
        lines, known = self.lines, None
        while True:
            for line in lines[place:]:
                if not await self._is_reached(line):
                    return
                if self._is_wanted(line):
                    yield self._shown(line)
            place = len(lines)
            if not await self._changes(3600.0):
                return
            pod = self._pod()
            text = None if pod is None else self.host.behavior(pod, self.container).logs
            if text is not None and text != known:
                known = text
                async with self.host.machine.turn():
                    lines = self._with_new(lines, told_lines(text))

    async def _is_reached(self, line: LogLine) -> bool:
        """Wait for the time of the line, and return whether the container runs until then."""
        moment = self.run.began + line.after
        while (remaining := moment - server_time.wall()) > 0:
            if not await self._changes(remaining):
                return moment <= self._end() + _SECOND
        return True

    async def _changes(self, within: float) -> bool:
        """Wait for a change of the pod or the timeout, and return whether the container still runs."""
        if self._runs():
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self.host.pods.changed(namespace_of(self.pod), name_of(self.pod))
        return self._runs()

    def _with_new(self, lines: Sequence[LogLine], texts: list[bytes]) -> Sequence[LogLine]:
        """Return the lines, extended by texts that continue them."""
        texts_before = [line.text for line in lines]
        if len(texts) <= len(texts_before) or texts[: len(texts_before)] != texts_before:
            return lines
        after = server_time.wall() - self.run.began
        return [*lines, *(LogLine(after, text) for text in texts[len(texts_before) :])]

    def _pod(self) -> Json | None:
        pod = self.host.pods.get(namespace_of(self.pod), name_of(self.pod))
        return pod if pod is not None and uid_of(pod) == uid_of(self.pod) else None

    def _runs(self) -> bool:
        status = container_status(self._pod() or {}, self.container)
        running = part(status, "state", "running")
        return seconds_of(running.get("startedAt")) == self.run.began

    def _end(self) -> float:
        """Return the end of the run; 0 if unknown."""
        status = container_status(self._pod() or {}, self.container)
        for state in (status.get("state") or {}, status.get("lastState") or {}):
            ended = state.get("terminated") or {}
            if seconds_of(ended.get("startedAt")) == self.run.began:
                return seconds_of(ended.get("finishedAt")) or 0.0
        return 0.0

    def _is_wanted(self, line: LogLine) -> bool:
        since = self.options.since
        is_new = since is None or self.run.began + line.after >= since
        return is_new and self.options.stream in (ALL, line.stream)

    def _shown(self, line: LogLine) -> bytes:
        if not self.options.timestamps:
            return line.text + b"\n"
        seconds = self.run.began + line.after
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        return f"{(f'{whole}.{int(seconds % 1 * 1e9):09d}Z')} ".encode() + line.text + b"\n"
