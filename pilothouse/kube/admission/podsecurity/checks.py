"""Checks of the Pod Security Standards. A check takes a pod or a template and returns a violation or None.

Profiles of AppArmor and seccomp are RuntimeDefault or Localhost, never Unconfined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, TypeAlias

from pilothouse.kube.admission.podsecurity.policy import Level
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

_ALLOWED = ("RuntimeDefault", "Localhost")
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"


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


def _bad_type(field: str) -> Callable[[Json], str | None]:
    """Return the forbidden profile type of a security context, or an empty string."""

    def bad(security: Json) -> str | None:
        profile = security.get(field)
        kind = None if profile is None else profile.get("type") or ""
        return None if kind is None or kind in _ALLOWED else kind

    return bad


def _types(pod: CheckedPod, bad: Callable[[Json], str | None]) -> list[str]:
    types = {bad(pod.security), *(bad(security_of(container)) for container in pod.containers)}
    return sorted(kind for kind in types if kind is not None)


def app_armor(pod: CheckedPod) -> Violation | None:
    bad = _bad_type("appArmorProfile")
    violators = setters(bad(pod.security) is not None, pod.names_of(lambda security: bad(security) is not None))
    annotations = sorted(
        f"{key}={quote(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(_APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    values = [*_types(pod, bad), *annotations]
    everyone = [violators] if violators else []
    everyone += [plural("annotation", annotations)] if annotations else []
    if not everyone:
        return None
    detail = f"{' and '.join(everyone)} must not set AppArmor profile type to {quoted(values)}"
    return Violation(plural("forbidden AppArmor profile", values), detail)


def seccomp_annotations(pod: CheckedPod) -> Violation | None:
    """Check the annotations that preceded the field."""
    keys = [_SECCOMP_POD, *(_SECCOMP_CONTAINER + container["name"] for container in pod.containers)]
    said = {key: pod.annotations[key] for key in keys if key in pod.annotations}
    bad = sorted(
        f"{key}={quote(value)}"
        for key, value in said.items()
        if not (value in ("runtime/default", "docker/default") or value.startswith("localhost/"))
    )
    detail = f"forbidden {plural('annotation', bad)} {', '.join(bad)}"
    return Violation("seccompProfile", detail) if bad else None


def seccomp_fields(pod: CheckedPod) -> Violation | None:
    bad = _bad_type("seccompProfile")
    violators = setters(bad(pod.security) is not None, pod.names_of(lambda security: bad(security) is not None))
    detail = f"{violators} must not set securityContext.seccompProfile.type to {quoted(_types(pod, bad))}"
    return Violation("seccompProfile", detail) if violators else None


def seccomp_required(pod: CheckedPod) -> Violation | None:
    if (violation := seccomp_fields(pod)) is not None:
        return violation
    if pod.security.get("seccompProfile") is not None:
        return None
    silent = pod.names_of(lambda security: security.get("seccompProfile") is None)
    violators = f"pod or {named('container', silent)}"
    detail = f'{violators} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", detail) if silent else None
