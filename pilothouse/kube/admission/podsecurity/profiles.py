"""Checks of AppArmor and seccomp profiles: RuntimeDefault or Localhost, never Unconfined."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.kube.admission.podsecurity.checks import (
    CheckedPod,
    Violation,
    named,
    plural,
    quoted,
    security_of,
    setters,
)
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

_ALLOWED = ("RuntimeDefault", "Localhost")
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"


def _bad_type(field: str) -> Callable[[Json], str | None]:
    """Return the forbidden profile type of a security context, or an empty string."""

    def bad(security: Json) -> str | None:
        profile = security.get(field)
        kind = None if profile is None else profile.get("type") or ""
        return None if kind is None or kind in _ALLOWED else kind

    return bad


def _types(pod: CheckedPod, bad: Callable[[Json], str | None]) -> list[str]:
    said = {bad(pod.security), *(bad(security_of(container)) for container in pod.containers)}
    return sorted(kind for kind in said if kind is not None)


def app_armor(pod: CheckedPod) -> Violation | None:
    bad = _bad_type("appArmorProfile")
    who = setters(bad(pod.security) is not None, pod.names_of(lambda security: bad(security) is not None))
    annotations = sorted(
        f"{key}={quote(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(_APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    values = [*_types(pod, bad), *annotations]
    everyone = [who] if who else []
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
    who = setters(bad(pod.security) is not None, pod.names_of(lambda security: bad(security) is not None))
    detail = f"{who} must not set securityContext.seccompProfile.type to {quoted(_types(pod, bad))}"
    return Violation("seccompProfile", detail) if who else None


def seccomp_required(pod: CheckedPod) -> Violation | None:
    if (violation := seccomp_fields(pod)) is not None:
        return violation
    if pod.security.get("seccompProfile") is not None:
        return None
    silent = pod.names_of(lambda security: security.get("seccompProfile") is None)
    who = f"pod or {named('container', silent)}"
    detail = f'{who} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", detail) if silent else None
