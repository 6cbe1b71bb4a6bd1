"""Containers of a pod's spec, and their restart rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, part

INIT, SIDECAR, MAIN, EPHEMERAL = "init", "sidecar", "main", "ephemeral"

_PREFIXES = {INIT: "initContainers", SIDECAR: "initContainers", MAIN: "containers", EPHEMERAL: "ephemeralContainers"}


@dataclass(frozen=True, slots=True)
class Container:
    name: str
    kind: str
    spec: Json

    @property
    def field_path(self) -> str:
        return f"spec.{_PREFIXES[self.kind]}{{{self.name}}}"

    @property
    def image(self) -> str:
        image: str = self.spec.get("image") or ""
        return image

    def probe(self, name: str) -> Json | None:
        probe: Json | None = self.spec.get(f"{name}Probe")
        return probe


def containers_of(pod: Json) -> Iterator[Container]:
    """Yield all containers in start order."""
    spec: dict[str, Any] = pod.get("spec") or {}
    for each in spec.get("initContainers") or ():
        yield Container(each["name"], SIDECAR if each.get("restartPolicy") == "Always" else INIT, each)
    for each in spec.get("containers") or ():
        yield Container(each["name"], MAIN, each)
    for each in spec.get("ephemeralContainers") or ():
        yield Container(each["name"], EPHEMERAL, each)


def restarts_after(container: Container, pod: Json, exit_code: int) -> bool:
    """Return whether the container restarts after this exit, by its own rules and policy, or by the pod's."""
    if container.kind == SIDECAR:
        return True
    if container.kind == EPHEMERAL:
        return False
    for rule in container.spec.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        listed = exit_code in (codes.get("values") or ())
        if listed if codes.get("operator") == "In" else not listed:
            return bool(rule.get("action") in ("Restart", "RestartAllContainers"))
    policy = container.spec.get("restartPolicy") or part(pod, "spec").get("restartPolicy") or "Always"
    if policy == "Never":
        return False
    # A successful init container never restarts, regardless of the policy.
    return exit_code != 0 or (policy == "Always" and container.kind == MAIN)
