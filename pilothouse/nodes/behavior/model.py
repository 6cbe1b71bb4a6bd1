"""What a container or a node does. A field that is None is left to the next that has something to say about it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from pilothouse.machinery.dataclass import dataclass

T = TypeVar("T", "ContainerBehavior", "NodeBehavior")

STARTUP, READINESS, LIVENESS = PROBES = ("startup", "readiness", "liveness")


@dataclass(frozen=True, slots=True)
class ExecAnswer:
    """What a container answers to the commands that begin with these words; with no words, to all commands."""

    command: tuple[str, ...] = ()
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerBehavior:
    start_after: float | None = None
    """Seconds that it takes to be created."""
    image_pull_error: str | None = None
    """What the registry says instead of sending the image; empty for a pull that succeeds."""
    exit_after: float | None = None
    """Seconds after which the container ends by itself."""
    exit_code: int | None = None
    """What it ends with then."""
    oom_killed: bool | None = None
    """Whether it ends because it took too much memory: 137, OOMKilled."""
    exit_times: int | None = None
    """How often it ends like that; from then on it stays. With none, always."""
    failing_probes: frozenset[str] | None = None
    """Which of its probes fail: startup, readiness, liveness."""
    ready_after: float | None = None
    """Seconds that it takes to be ready, instead of what its probes say."""
    logs: str | None = None
    exec: tuple[ExecAnswer, ...] | None = None
    cpu: str | None = None
    """What it uses: a quantity, or a share of its request such as 50%."""
    memory: str | None = None

    def answer_to(self, command: list[str]) -> ExecAnswer | None:
        """Return what was configured for a command, the longest beginning first; None leaves it to the default."""
        fitting = (each for each in self.exec or () if tuple(command[: len(each.command)]) == each.command)
        return max(fitting, key=lambda each: len(each.command), default=None)

    def fails(self, probe: str) -> bool:
        return probe in (self.failing_probes or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBehavior:
    not_ready: bool | None = None
    """The node says of itself that it is not ready."""
    gone: bool | None = None
    """Nothing is heard of the node: no heartbeats, and its pods stay as they are."""
    memory_pressure: bool | None = None
    disk_pressure: bool | None = None
    pid_pressure: bool | None = None
    network_unavailable: bool | None = None


NOTHING_SPECIAL = ContainerBehavior()
HEALTHY = NodeBehavior()


def over(first: T, second: T) -> T:
    """Return the first, with the second's values where it has none of its own."""
    if first == second:
        return first
    given: dict[str, Any] = {each.name: getattr(first, each.name) for each in fields(first)}
    return replace(second, **{name: value for name, value in given.items() if value is not None})
