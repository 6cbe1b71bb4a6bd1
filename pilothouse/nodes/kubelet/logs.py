"""/containerLogs: the log of the current or previous run of a container."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from pilothouse.apiserver.http import Request, Response
from pilothouse.machinery.objects import Json, name_of, part
from pilothouse.nodes.containers.container import spec_of
from pilothouse.nodes.kubelet.host import Host, container_status
from pilothouse.nodes.kubelet.log_options import LogOptions
from pilothouse.nodes.kubelet.log_reading import LogReading, Run, seconds_of
from pilothouse.nodes.kubelet.log_text import log_lines

_TEXT: Final = [(b"content-type", b"text/plain")]
_WAITING: Final = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
    "RunContainerError": "no logs yet",
}
"""Waiting reason → message."""


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
    why = _WAITING.get(reason, reason)
    return f'container "{container}" in pod "{name_of(pod)}" is waiting to start: {why}'
