"""AppArmor annotations of old become fields, as long as there are clients that write them."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.kinds.pods import all_containers
from pilothouse.kube.core.pods.validation.profiles import (
    APPARMOR_PREFIX,
    LOCALHOST_PREFIX,
    RUNTIME_DEFAULT,
    UNCONFINED,
    validate_apparmor_profile,
)
from pilothouse.machinery.field import NOWHERE, root
from pilothouse.machinery.objects import Json, annotations_of

_ADVICE = 'deprecated since v1.30; use the "appArmorProfile" field instead'


def apparmor_field(annotation: str) -> Json | None:
    """The field that says the same as the annotation; None where no field can."""
    if annotation == UNCONFINED:
        return {"type": "Unconfined"}
    if annotation == RUNTIME_DEFAULT:
        return {"type": "RuntimeDefault"}
    name = annotation.removeprefix(LOCALHOST_PREFIX)
    if annotation.startswith(LOCALHOST_PREFIX) and name:
        profile = {"type": "Localhost", "localhostProfile": name}
        return None if any(True for _ in validate_apparmor_profile(profile, NOWHERE)) else profile
    return None


def apparmor_warnings(pod: Json) -> Iterator[str]:
    """Must be asked before the fields are filled in."""
    for container, annotation in _annotated(pod):
        profile = apparmor_field(annotation)
        if profile is None or profile != _pod_profile(pod):
            key = APPARMOR_PREFIX + (container.get("name") or "")
            yield f"{root('metadata', 'annotations').key(key)}: {_ADVICE}"


def fill_in_apparmor_fields(pod: Json) -> None:
    for container, annotation in _annotated(pod):
        profile = apparmor_field(annotation)
        if profile is not None and profile != _pod_profile(pod):
            container["securityContext"] = (container.get("securityContext") or {}) | {"appArmorProfile": profile}


def _annotated(pod: Json) -> Iterator[tuple[Json, str]]:
    """Containers with an annotation and no field of their own."""
    annotations, spec = annotations_of(pod), pod.get("spec") or {}
    if not annotations or (spec.get("os") or {}).get("name") == "windows":
        return
    for container in all_containers(spec):
        annotation = annotations.get(APPARMOR_PREFIX + (container.get("name") or ""))
        if annotation is not None and (container.get("securityContext") or {}).get("appArmorProfile") is None:
            yield container, annotation


def _pod_profile(pod: Json) -> Json | None:
    return ((pod.get("spec") or {}).get("securityContext") or {}).get("appArmorProfile")
