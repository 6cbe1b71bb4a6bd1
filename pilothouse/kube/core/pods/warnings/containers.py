"""Warnings about containers: annotations in place of fields, fractions of bytes, doubled variables and ports."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.kube.core.pods.apparmor import apparmor_field
from pilothouse.kube.core.pods.containers import containers_with_path
from pilothouse.kube.core.pods.validation.profiles import APPARMOR_PREFIX, SECCOMP_CONTAINER_PREFIX
from pilothouse.machinery.field import Path
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, annotations_of
from pilothouse.machinery.quantity import parse_quantity

SECCOMP_ANNOTATION_IGNORED = 'non-functional in v1.27+; use the "seccompProfile" field instead'

_BYTES = ("memory", "ephemeral-storage")


def container_warnings(container: Json, path: Path, owner: Json, top: Path, *, is_template: bool) -> Iterator[str]:
    """`owner` is the pod or template, and `top` where it stands."""
    yield from _annotation_warnings(container, owner, top, is_template=is_template)
    resources = container.get("resources") or {}
    for name in _BYTES:
        for kind in ("limits", "requests"):
            amounts = resources.get(kind) or {}
            if name in amounts:
                yield from fractional(amounts[name], path.child("resources", kind).key(name))
    yield from _env_warnings(container, path.child("env"))


def fractional_warnings(amounts: Json, path: Path) -> Iterator[str]:
    for name in _BYTES:
        if name in amounts:
            yield from fractional(amounts[name], path.key(name))


def fractional(amount: str, path: Path) -> Iterator[str]:
    if parse_quantity(amount).milli_value() % 1000:
        yield f"{path}: fractional byte value {quote(amount)} is invalid, must be an integer"


def _annotation_warnings(container: Json, owner: Json, top: Path, *, is_template: bool) -> Iterator[str]:
    annotations, context = annotations_of(owner), container.get("securityContext") or {}
    if not annotations:
        return
    at, name = top.child("metadata", "annotations"), container.get("name") or ""
    if context.get("seccompProfile") is None and SECCOMP_CONTAINER_PREFIX + name in annotations:
        key = at.key(SECCOMP_CONTAINER_PREFIX + name)
        yield f"{key}: {SECCOMP_ANNOTATION_IGNORED}"
    # Pods are warned while their annotations are turned into fields; templates keep them.
    annotation = annotations.get(APPARMOR_PREFIX + name)
    if not is_template or annotation is None or context.get("appArmorProfile") is not None:
        return
    of_pod = ((owner.get("spec") or {}).get("securityContext") or {}).get("appArmorProfile")
    if of_pod is None or of_pod != apparmor_field(annotation):
        key = at.key(APPARMOR_PREFIX + name)
        yield f'{key}: deprecated since v1.30; use the "appArmorProfile" field instead'


def _env_warnings(container: Json, path: Path) -> Iterator[str]:
    """A variable that is given twice is fine as long as the second is made from the first."""
    seen: set[str] = set()
    for position, variable in enumerate(container.get("env") or ()):
        name, value = variable.get("name") or "", variable.get("value") or ""
        reference = f"$({name})"
        extends = reference in value and value != reference and variable.get("valueFrom") is None
        if name in seen and not extends:
            hides = f"hides previous definition of {quote(name)}, which may be dropped when using apply"
            yield f"{path.index(position)}: {hides}"
        seen.add(name)


def port_warnings(spec: Json, path: Path) -> Iterator[str]:
    seen: dict[str, list[tuple[Path, Json]]] = {}
    for at, container in containers_with_path(spec, path):
        for position, port in enumerate(container.get("ports") or ()):
            place = at.child("ports").index(position)
            if port.get("hostIP") and not port.get("hostPort"):
                yield f"{place}: hostIP set without hostPort: {_go_port(port)}"
            same = seen.setdefault(f"{port.get('containerPort')}/{port.get('protocol')}", [])
            for where, other in same:
                if problem := _clash(port, other):
                    yield f"{place}: {problem} port definition with {where}"
            same.append((place, port))


def _clash(port: Json, other: Json) -> str:
    """Return how two definitions of one port clash, empty when they do not."""
    number, address = port.get("hostPort") or 0, port.get("hostIP") or ""
    other_number, other_address = other.get("hostPort") or 0, other.get("hostIP") or ""
    if (number, address) == (other_number, other_address):
        return "duplicate"
    if not number or not other_number:
        return "overlapping"
    return "dangerously ambiguous" if number == other_number and (not address) != (not other_address) else ""


def _go_port(port: Json) -> str:
    """As Go prints the structure."""
    name, protocol, address = (port.get(field) or "" for field in ("name", "protocol", "hostIP"))
    numbers = f"HostPort:{port.get('hostPort') or 0} ContainerPort:{port.get('containerPort') or 0}"
    return f"{{Name:{name} {numbers} Protocol:{protocol} HostIP:{address}}}"


def port_name_warnings(spec: Json, path: Path) -> Iterator[str]:
    first: dict[str, Path] = {}
    for at, container in containers_with_path(spec, path):
        for position, port in enumerate(container.get("ports") or ()):
            if not (name := port.get("name")):
                continue
            place = at.child("ports").index(position)
            if (other := first.get(name)) is None:
                first[name] = place
            else:
                effect = f"services and probes that select ports by name will use {other}"
                yield f"{place}: duplicate port name {quote(name)} with {other}, {effect}"
