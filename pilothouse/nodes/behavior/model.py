"""Behaviour of a container or node. A field that is None falls back to the next source."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from pilothouse.machinery.dataclass import dataclass

T = TypeVar("T", "ContainerBehavior", "NodeBehavior")

STARTUP, READINESS, LIVENESS = PROBES = ("startup", "readiness", "liveness")


@dataclass(frozen=True, slots=True)
class ExecAnswer:
    """The response to commands with this prefix; an empty prefix matches all commands."""

    command: tuple[str, ...] = ()
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerBehavior:
    start_after: float | None = None
    """Seconds until the container is created."""
    image_pull_error: str | None = None
    """Error message of the image pull; empty = the pull succeeds."""
    exit_after: float | None = None
    """Seconds until the container exits."""
    exit_code: int | None = None
    """Exit code."""
    oom_killed: bool | None = None
    """Whether the container is OOMKilled, with exit code 137."""
    exit_times: int | None = None
    """Number of such exits, after which the container keeps running; None = unlimited."""
    failing_probes: frozenset[str] | None = None
    """Failing probes: startup, readiness, liveness."""
    ready_after: float | None = None
    """Seconds until the container is ready, regardless of probes."""
    logs: str | None = None
    exec: tuple[ExecAnswer, ...] | None = None
    cpu: str | None = None
    """CPU usage: a quantity, or a percentage of the request such as 50%."""
    memory: str | None = None

    def answer_to(self, command: list[str]) -> ExecAnswer | None:
        """Return the configured response with the longest matching prefix; None = default response."""
        fitting = (each for each in self.exec or () if tuple(command[: len(each.command)]) == each.command)
        return max(fitting, key=lambda each: len(each.command), default=None)

    def fails(self, probe: str) -> bool:
        return probe in (self.failing_probes or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBehavior:
    not_ready: bool | None = None
    """The node reports NotReady."""
    gone: bool | None = None
    """The node is silent: no heartbeats, and its pods do not change."""
    memory_pressure: bool | None = None
    disk_pressure: bool | None = None
    pid_pressure: bool | None = None
    network_unavailable: bool | None = None


NOTHING_SPECIAL = ContainerBehavior()
HEALTHY = NodeBehavior()


def over(first: T, second: T) -> T:
    """Return `first`, with unset fields taken from `second`."""
    if first == second:
        return first
    given: dict[str, Any] = {each.name: getattr(first, each.name) for each in fields(first)}
    return replace(second, **{name: value for name, value in given.items() if value is not None})
