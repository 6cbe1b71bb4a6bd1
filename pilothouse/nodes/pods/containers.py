"""The containers of a pod as its spec has them, and when each may be started again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

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
    """Yield all of them in the order in which they start."""
    spec: dict[str, Any] = pod.get("spec") or {}
    for each in spec.get("initContainers") or ():
        yield Container(each["name"], SIDECAR if each.get("restartPolicy") == "Always" else INIT, each)
    for each in spec.get("containers") or ():
        yield Container(each["name"], MAIN, each)
    for each in spec.get("ephemeralContainers") or ():
        yield Container(each["name"], EPHEMERAL, each)


def restarts_after(container: Container, pod: Json, exit_code: int) -> bool:
    """Whether a container that has ended like this is started again: by its own rules and policy, or by its pod's."""
    if container.kind == SIDECAR:
        return True
    if container.kind == EPHEMERAL:
        return False
    for rule in container.spec.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        listed = exit_code in (codes.get("values") or ())
        if listed if codes.get("operator") == "In" else not listed:
            return bool(rule.get("action") in ("Restart", "RestartAllContainers"))
    policy = container.spec.get("restartPolicy") or (pod.get("spec") or {}).get("restartPolicy") or "Always"
    if policy == "Never":
        return False
    # An init container that has succeeded is never run again, whatever the policy.
    return exit_code != 0 or (policy == "Always" and container.kind == MAIN)
