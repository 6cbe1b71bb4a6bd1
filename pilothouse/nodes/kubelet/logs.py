"""/containerLogs: the log of a container, whole or from where it is wanted, and further as it is written."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Final

from pilothouse.apiserver.http import Request, Response
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of, uid_of
from pilothouse.machinery.times import parse_time
from pilothouse.nodes.containers.container import spec_of
from pilothouse.nodes.kubelet.host import Host, container_status
from pilothouse.nodes.kubelet.log_text import LogLine, log_lines

_TEXT: Final = [(b"content-type", b"text/plain")]
_ALL: Final = "All"
_SECOND: Final = 1.0
"""Statuses tell times in whole seconds: a container that has ended may have written until the next one."""
_WAITING: Final = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
    "RunContainerError": "no logs yet",
}
"""What is said of a container that waits for a reason that needs words."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: float | None = None
    """Seconds since the epoch."""
    tail: int | None = None
    limit: int | None = None
    stream: str = _ALL

    @classmethod
    def of(cls, request: Request) -> LogOptions:
        """Raises ValueError."""
        return cls(
            follow=request.param("follow") in ("true", "1"),
            previous=request.param("previous") in ("true", "1"),
            timestamps=request.param("timestamps") in ("true", "1"),
            since=_since(request),
            tail=_number(request.param("tailLines")),
            limit=_number(request.param("limitBytes")),
            stream=request.param("stream") or _ALL,
        )


def _number(text: str) -> int | None:
    return int(text) if text else None


def _since(request: Request) -> float | None:
    if seconds := _number(request.param("sinceSeconds")):
        return time.time() - seconds
    moment = parse_time(request.param("sinceTime")) if request.param("sinceTime") else None
    return None if moment is None else moment.timestamp()


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
    """Return the log of the container, or why there is none."""
    container: str = spec["name"]
    run = _run_of(pod, container, options)
    if isinstance(run, str):
        return run
    lines = await log_lines(pod, spec, host.behavior(pod, container).logs, await host.objects_for(pod, spec))
    return _Reading(host, pod, container, options, run, lines).read()


@dataclass(frozen=True, slots=True)
class _Run:
    """One life of a container: when it began, and ended if it has."""

    began: float
    ended: float | None


def _run_of(pod: Json, container: str, options: LogOptions) -> _Run | str:
    """Return the run that is asked for, or why there is none."""
    status = container_status(pod, container)
    state = (status.get("lastState") if options.previous else status.get("state")) or {}
    for described in (state.get("running"), state.get("terminated")):
        if described and (began := _seconds(described.get("startedAt"))) is not None:
            return _Run(began, _seconds(described.get("finishedAt")))
    if options.previous:
        return f'previous terminated container "{container}" in pod "{name_of(pod)}" not found'
    if last := (status.get("lastState") or {}).get("terminated"):
        return _Run(_seconds(last.get("startedAt")) or 0.0, _seconds(last.get("finishedAt")))
    reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
    why = _WAITING.get(reason, reason)
    return f'container "{container}" in pod "{name_of(pod)}" is waiting to start: {why}'


def _seconds(text: str | None) -> float | None:
    moment = parse_time(text) if text else None
    return None if moment is None else moment.timestamp()


@dataclass(frozen=True, slots=True)
class _Reading:
    host: Host
    pod: Json
    container: str
    options: LogOptions
    run: _Run
    lines: Sequence[LogLine]

    async def read(self) -> AsyncIterator[bytes]:
        left = self.options.limit
        async for piece in self._pieces():
            if left is not None:
                piece, left = piece[:left], left - len(piece)
            yield piece
            if left is not None and left <= 0:
                return

    async def _pieces(self) -> AsyncIterator[bytes]:
        now = time.time() if self.run.ended is None else self.run.ended + _SECOND
        written = [line for line in self.lines if self.run.began + line.after <= now]
        chosen = [*filter(self._is_wanted, written)]
        if self.options.tail is not None:
            chosen = chosen[max(0, len(chosen) - self.options.tail) :]
        if chosen:
            yield b"".join(map(self._shown, chosen))
        if self.options.follow and self.run.ended is None:
            async for line in self._further(len(written)):
                yield line

    async def _further(self, place: int) -> AsyncIterator[bytes]:
        """Yields what is written from now on, until the container ends."""
        for line in self.lines[place:]:
            if not await self._runs_until(self.run.began + line.after):
                return
            if self._is_wanted(line):
                yield self._shown(line)
        while await self._runs_until(float("inf")):
            pass

    async def _runs_until(self, moment: float) -> bool:
        """Whether the container still runs at the moment; returns before it when it does not."""
        while self._runs():
            left = moment - time.time()
            if left <= 0:
                return True
            changed = self.host.pods.changed(namespace_of(self.pod), name_of(self.pod))
            try:
                async with asyncio.timeout(min(left, 3600.0)):
                    await changed
            except TimeoutError:
                pass
        return False

    def _runs(self) -> bool:
        pod = self.host.pods.get(namespace_of(self.pod), name_of(self.pod))
        if pod is None or uid_of(pod) != uid_of(self.pod):
            return False
        running = (container_status(pod, self.container).get("state") or {}).get("running") or {}
        return _seconds(running.get("startedAt")) == self.run.began

    def _is_wanted(self, line: LogLine) -> bool:
        since = self.options.since
        is_new = since is None or self.run.began + line.after >= since
        return is_new and self.options.stream in (_ALL, line.stream)

    def _shown(self, line: LogLine) -> bytes:
        if not self.options.timestamps:
            return line.text + b"\n"
        return f"{_stamp(self.run.began + line.after)} ".encode() + line.text + b"\n"


def _stamp(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1e9):09d}Z"
