"""Checks of the Pod Security Standards. A check takes a pod or a template and returns a violation or None."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, TypeAlias

from pilothouse.kube.admission.podsecurity.policy import Level
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class Violation:
    reason: str
    """Short form for summaries over many pods."""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


@dataclass(frozen=True, slots=True)
class CheckedPod:
    metadata: Json
    spec: Json

    @property
    def containers(self) -> list[Json]:
        kinds = ("initContainers", "containers", "ephemeralContainers")
        return [container for kind in kinds for container in self.spec.get(kind) or []]

    @property
    def security(self) -> Json:
        """The pod's own security context."""
        return self.spec.get("securityContext") or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def is_windows(self) -> bool:
        return bool((self.spec.get("os") or {}).get("name") == "windows")

    @property
    def has_own_users(self) -> bool:
        """Report whether the pod runs in a user namespace."""
        return self.spec.get("hostUsers") is False

    def names_of(self, is_bad: Callable[[Json], bool]) -> list[str]:
        """Return container names by the contents of their security context."""
        return [container["name"] for container in self.containers if is_bad(security_of(container))]


CheckPod: TypeAlias = Callable[[CheckedPod], Violation | None]


@dataclass(frozen=True, slots=True)
class Check:
    """The revisions of a check, by minor version.

    `overrides` lists the baseline checks that a restricted check replaces.
    """

    id: str
    level: Level
    revisions: dict[int, CheckPod]
    overrides: frozenset[str] = field(default_factory=frozenset)

    def revision(self, minor: int) -> CheckPod | None:
        """Return the newest revision up to the version."""
        result = [since for since in self.revisions if since <= minor]
        return self.revisions[max(result)] if result else None


def security_of(container: Json) -> Json:
    return container.get("securityContext") or {}


def unless(exempt: Callable[[CheckedPod], bool], check: CheckPod) -> CheckPod:
    """Return a revision of the check with exemptions."""
    return lambda pod: None if exempt(pod) else check(pod)


def plural(word: str, items: Iterable[Any], *, many: str = "") -> str:
    return word if len(list(items)) == 1 else many or word + "s"


def quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def named(word: str, items: list[str]) -> str:
    """`container "a"`, `containers "a", "b"`."""
    return f"{plural(word, items)} {quoted(items)}"


def setters(pod: bool, containers: list[str]) -> str:
    """Return the phrase for pod and containers in violations; empty for neither."""
    who = (["pod"] if pod else []) + ([named("container", containers)] if containers else [])
    return " and ".join(who)
