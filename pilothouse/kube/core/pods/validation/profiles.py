"""Seccomp and AppArmor profiles: fields and deprecated annotations.

AppArmor annotations of new pods are copied to fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pilothouse.kinds.pods import all_containers, containers_with_path
from pilothouse.kube.core.pods.internal_form import internal_form
from pilothouse.kube.validation.fields import local_descending_path
from pilothouse.machinery.field import (
    NOWHERE,
    Errors,
    Path,
    forbidden,
    invalid,
    not_supported,
    required,
    root,
    too_long,
)
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, annotations_of

SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER_PREFIX = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
RUNTIME_DEFAULT = "runtime/default"
UNCONFINED = "unconfined"
LOCALHOST_PREFIX = "localhost/"

_DOCKER_DEFAULT = "docker/default"
_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_MAX_PROFILE_NAME = 4095


def validate_seccomp_profile(profile: Json, path: Path) -> Errors:
    kind, name = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        yield required(path.child("type"), "type is required when seccompProfile is set")
    elif kind not in _TYPES:
        yield not_supported(path.child("type"), kind, _TYPES)
    if kind != "Localhost":
        if name is not None:
            internal = internal_form("SeccompProfile", profile)
            yield invalid(path.child("localhostProfile"), internal, "can only be set when seccomp type is Localhost")
    elif name is None:
        yield required(path.child("localhostProfile"), "must be set when seccomp type is Localhost")
    else:
        yield from local_descending_path(name, path.child("localhostProfile"))


def validate_apparmor_profile(profile: Json, path: Path) -> Errors:
    kind, name = profile.get("type") or "", profile.get("localhostProfile")
    if kind == "Localhost":
        localhost_profile_path = path.child("localhostProfile")
        if name is None:
            yield required(localhost_profile_path, "must be set when AppArmor type is Localhost")
        else:
            if name != name.strip():
                yield invalid(localhost_profile_path, name, "must not be padded with whitespace")
            elif not name:
                yield required(localhost_profile_path, "must be set when AppArmor type is Localhost")
            if len(name.encode()) > _MAX_PROFILE_NAME:
                yield too_long(localhost_profile_path, _MAX_PROFILE_NAME)
    elif kind in _TYPES:
        if name is not None:
            yield invalid(path.child("localhostProfile"), name, "can only be set when AppArmor type is Localhost")
    elif not kind:
        yield required(path.child("type"), "type is required when appArmorProfile is set")
    else:
        yield not_supported(path.child("type"), kind, _TYPES)


def validate_seccomp_annotations(annotations: Mapping[str, str], path: Path) -> Errors:
    if SECCOMP_POD in annotations:
        yield from _validate_seccomp_annotation(annotations[SECCOMP_POD], path.child(SECCOMP_POD))
    for key in sorted(annotations):
        if key.startswith(SECCOMP_CONTAINER_PREFIX):
            yield from _validate_seccomp_annotation(annotations[key], path.child(key))


def _validate_seccomp_annotation(value: str, path: Path) -> Errors:
    if value in (RUNTIME_DEFAULT, _DOCKER_DEFAULT, UNCONFINED):
        return
    if value.startswith(LOCALHOST_PREFIX):
        yield from local_descending_path(value.removeprefix(LOCALHOST_PREFIX), path)
    else:
        yield invalid(path, value, "must be a valid seccomp profile")


def validate_apparmor_annotations(annotations: Mapping[str, str], spec: Json, path: Path) -> Errors:
    names = {container.get("name") for _, container in containers_with_path(spec, path)}
    for key in sorted(key for key in annotations if key.startswith(APPARMOR_PREFIX)):
        name, profile = key.removeprefix(APPARMOR_PREFIX), annotations[key]
        if name not in names:
            yield invalid(path.key(key), name, "container not found")
        if profile not in ("", RUNTIME_DEFAULT, UNCONFINED) and not profile.startswith(LOCALHOST_PREFIX):
            yield invalid(path.key(key), profile, f"invalid AppArmor profile name: {quote(profile)}")


def validate_profiles_agree(annotations: Mapping[str, str], spec: Json, path: Path) -> Errors:
    """Reject different profiles in annotation and field."""
    if not annotations:
        return
    pod = spec.get("securityContext") or {}
    if (profile := pod.get("seccompProfile")) is not None and SECCOMP_POD in annotations:
        at = path.child("securityContext", "seccompProfile")
        yield from _validate_same_seccomp(annotations[SECCOMP_POD], profile, at)
    for at, container in containers_with_path(spec, path):
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        annotation = annotations.get(SECCOMP_CONTAINER_PREFIX + (container.get("name") or ""))
        if profile is not None and annotation is not None:
            yield from _validate_same_seccomp(annotation, profile, at.child("securityContext", "seccompProfile"))
    if (spec.get("os") or {}).get("name") == "windows":
        return
    for at, container in containers_with_path(spec, path):
        profile = (container.get("securityContext") or {}).get("appArmorProfile") or pod.get("appArmorProfile")
        annotation = annotations.get(APPARMOR_PREFIX + (container.get("name") or ""))
        if profile is not None and annotation is not None:
            at = at.child("securityContext", "appArmorProfile")
            yield from _validate_same(annotation, profile, at, what="apparmor", default=(RUNTIME_DEFAULT,))


def _validate_same_seccomp(annotation: str, profile: Json, path: Path) -> Errors:
    return _validate_same(annotation, profile, path, what="seccomp", default=(RUNTIME_DEFAULT, _DOCKER_DEFAULT))


def _validate_same(annotation: str, profile: Json, path: Path, *, what: str, default: tuple[str, ...]) -> Errors:
    kind = profile.get("type")
    agrees = {
        "Unconfined": annotation == UNCONFINED,
        "RuntimeDefault": annotation in default,
        "Localhost": annotation.startswith(LOCALHOST_PREFIX),
    }
    if not agrees.get(kind or "", True):
        yield forbidden(path.child("type"), f"{what} type in annotation and field must match")
    elif kind == "Localhost" and annotation.removeprefix(LOCALHOST_PREFIX) != profile.get("localhostProfile"):
        reason = f"{what} profile in annotation and field must match"
        yield forbidden(path.child("localhostProfile"), reason)


_ADVICE = 'deprecated since v1.30; use the "appArmorProfile" field instead'


def apparmor_field(annotation: str) -> Json | None:
    """Return the field for an annotation, or None if no field has the same meaning."""
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
    """Yield warnings about annotations. Call before `fill_in_apparmor_fields`."""
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
    """Yield containers with an annotation but without the field."""
    annotations, spec = annotations_of(pod), pod.get("spec") or {}
    if not annotations or (spec.get("os") or {}).get("name") == "windows":
        return
    for container in all_containers(spec):
        annotation = annotations.get(APPARMOR_PREFIX + (container.get("name") or ""))
        if annotation is not None and (container.get("securityContext") or {}).get("appArmorProfile") is None:
            yield container, annotation


def _pod_profile(pod: Json) -> Json | None:
    return ((pod.get("spec") or {}).get("securityContext") or {}).get("appArmorProfile")
