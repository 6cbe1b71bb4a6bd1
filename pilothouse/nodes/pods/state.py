"""What has happened to the containers of a pod so far. Times are seconds since 1970."""

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
    """How a container ended."""

    exit_code: int
    reason: str
    message: str
    started: float
    finished: float
    restarts: int
    """How often the container had been restarted before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    stage: str = WAITING
    reason: str = ""
    """Why it waits."""
    message: str = ""
    since: float = 0.0
    """When it began to wait, run or be terminated; 0 while its turn has not come."""
    restarts: int = 0
    crashes: int = 0
    """How often it has ended without running well in between; the back-off goes by this."""
    pulls: int = 0
    """How often its image could not be pulled."""
    started: bool = False
    ready: bool = False
    ended: Termination | None = None
    """How it ended, if it is terminated."""
    last: Termination | None = None
    """How it ended before it was restarted."""

    @property
    def runs(self) -> bool:
        return self.stage == RUNNING


@dataclass(frozen=True, slots=True)
class Kill:
    """All containers must end."""

    since: float
    reason: str = ""
    message: str = ""
    """Of a pod that fails for it; empty for one that was deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    start_time: float
    containers: Mapping[str, ContainerState] = field(default_factory=dict)
    kill: Kill | None = None
    phase: str = ""
    """Succeeded or Failed, once it is one of these: it stays so."""
    has_sandbox: bool = False
    """Whether the pod has its place and its address."""
    resize_problem: str = ""
    """Why the pod can not have the resources that it asks for."""
