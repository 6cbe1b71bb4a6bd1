"""Events of a kubelet about a pod and its containers."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of, uid_of
from pilothouse.nodes.behavior.model import LIVENESS, STARTUP
from pilothouse.nodes.pods.ends import crash_back_off_seconds
from pilothouse.nodes.pods.state import Container


@dataclass(frozen=True, slots=True)
class PodEvent:
    type: str
    reason: str
    message: str
    field_path: str = ""
    """Field path of the container."""


def pulled(container: Container) -> Iterator[PodEvent]:
    image, at = container.image, container.field_path
    if container.spec.get("imagePullPolicy") == "Always":
        yield PodEvent(NORMAL, "Pulling", f'Pulling image "{image}"', at)
        took = "1ms (1ms including waiting). Image size: 0 bytes."
        yield PodEvent(NORMAL, "Pulled", f'Successfully pulled image "{image}" in {took}', at)
    else:
        message = f'Container image "{image}" already present on machine and can be accessed by the pod'
        yield PodEvent(NORMAL, "Pulled", message, at)


def started(container: Container) -> Iterator[PodEvent]:
    yield PodEvent(NORMAL, "Created", "Container created", container.field_path)
    yield PodEvent(NORMAL, "Started", "Container started", container.field_path)


def start_failed(container: Container, error: str) -> Iterator[PodEvent]:
    yield PodEvent(NORMAL, "Created", "Container created", container.field_path)
    yield PodEvent(WARNING, "Failed", f"Error: {error}", container.field_path)


def pull_failed(container: Container, error: str) -> Iterator[PodEvent]:
    image, at = container.image, container.field_path
    yield PodEvent(NORMAL, "Pulling", f'Pulling image "{image}"', at)
    yield PodEvent(WARNING, "Failed", f'Failed to pull image "{image}": {error}', at)
    yield PodEvent(WARNING, "Failed", "Error: ErrImagePull", at)


def image_has_no_name(container: Container, problem: str) -> Iterator[PodEvent]:
    yield PodEvent(WARNING, "InspectFailed", problem, container.field_path)
    yield PodEvent(WARNING, "Failed", "Error: InvalidImageName", container.field_path)


def pull_backs_off(container: Container) -> Iterator[PodEvent]:
    at = container.field_path
    yield PodEvent(NORMAL, "BackOff", f'Back-off pulling image "{container.image}"', at)
    yield PodEvent(WARNING, "Failed", "Error: ImagePullBackOff", at)


def config_failed(container: Container, message: str) -> Iterator[PodEvent]:
    yield PodEvent(WARNING, "Failed", f"Error: {message}", container.field_path)


def restart_backs_off(container: Container, pod: Json) -> Iterator[PodEvent]:
    message = f"Back-off restarting failed container {container.name} in pod {_shown(pod)}"
    yield PodEvent(WARNING, "BackOff", message, container.field_path)


def back_off_message(container: Container, pod: Json, crashes: int) -> str:
    """Return the message of the back-off."""
    minutes, seconds = divmod(int(crash_back_off_seconds(crashes)), 60)
    span = f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
    return f"back-off {span} restarting failed container={container.name} pod={_shown(pod)}"


def killing(container: Container) -> Iterator[PodEvent]:
    yield PodEvent(NORMAL, "Killing", f"Stopping container {container.name}", container.field_path)


def killed_for_resize(container: Container) -> Iterator[PodEvent]:
    yield PodEvent(NORMAL, "Killing", f"Container {container.name} resize requires restart", container.field_path)


def probe_failed(container: Container, probe: str, output: str) -> Iterator[PodEvent]:
    message = f"{probe.capitalize()} probe failed: {output}"
    yield PodEvent(WARNING, "Unhealthy", message, container.field_path)
    if probe in (STARTUP, LIVENESS):
        message = f"Container {container.name} failed {probe} probe, will be restarted"
        yield PodEvent(NORMAL, "Killing", message, container.field_path)


def deadline_exceeded(message: str) -> Iterator[PodEvent]:
    yield PodEvent(NORMAL, "DeadlineExceeded", message)


def refused(reason: str, message: str) -> Iterator[PodEvent]:
    yield PodEvent(WARNING, reason, message)


def mount_failed(message: str) -> Iterator[PodEvent]:
    yield PodEvent(WARNING, "FailedMount", message)


def behavior_refused(message: str) -> Iterator[PodEvent]:
    yield PodEvent(WARNING, "InvalidBehavior", f"The annotations about behavior are ignored: {message}")


def _shown(pod: Json) -> str:
    return f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
