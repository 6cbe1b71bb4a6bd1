"""State of a pod's containers. Times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pilothouse.machinery.dataclass import dataclass

WAITING, RUNNING, TERMINATED = "waiting", "running", "terminated"

CONTAINER_CREATING, POD_INITIALIZING = "ContainerCreating", "PodInitializing"
ERR_IMAGE_PULL, IMAGE_PULL_BACK_OFF = "ErrImagePull", "ImagePullBackOff"
ERR_IMAGE_NEVER_PULL, INVALID_IMAGE_NAME = "ErrImageNeverPull", "InvalidImageName"
CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
CREATE_CONTAINER_CONFIG_ERROR = "CreateContainerConfigError"


@dataclass(frozen=True, slots=True)
class Termination:
    """The exit of a container."""

    exit_code: int
    reason: str
    message: str
    started: float
    finished: float
    restarts: int
    """Restart count before the exit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    stage: str = WAITING
    reason: str = ""
    """Waiting reason."""
    message: str = ""
    since: float = 0.0
    """Start of the current stage; 0 before the container's first turn."""
    restarts: int = 0
    crashes: int = 0
    """Consecutive exits without a stable run; determines the back-off."""
    pulls: int = 0
    """Number of failed image pulls."""
    started: bool = False
    ready: bool = False
    ended: Termination | None = None
    """The exit, if terminated."""
    last: Termination | None = None
    """The exit before the last restart."""

    @property
    def runs(self) -> bool:
        return self.stage == RUNNING


@dataclass(frozen=True, slots=True)
class Kill:
    """All containers must stop."""

    since: float
    reason: str = ""
    message: str = ""
    """Message of the failed pod; empty for deleted pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    start_time: float
    containers: Mapping[str, ContainerState] = field(default_factory=dict)
    kill: Kill | None = None
    phase: str = ""
    """Final phase, Succeeded or Failed; empty before."""
    has_sandbox: bool = False
    """Whether the pod has a sandbox and an address."""
    resize_problem: str = ""
    """Reason why the requested resources are infeasible."""
