"""Warnings about containers: deprecated annotations, fractional bytes, duplicate variables and ports."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice

from pilothouse.kinds.pods import containers_with_path
from pilothouse.kube.core.pods.validation.profiles import APPARMOR_PREFIX, SECCOMP_CONTAINER_PREFIX, apparmor_field
from pilothouse.machinery.field import Path
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, annotations_of
from pilothouse.machinery.quantity import parse_quantity

SECCOMP_ANNOTATION_IGNORED = 'non-functional in v1.27+; use the "seccompProfile" field instead'

_BYTES = ("memory", "ephemeral-storage")
_MOST_CLASHES = 20
"""Maximum reported conflicts per port. Bounds the quadratic number of conflicts."""


def container_warnings(container: Json, path: Path, owner: Json, top: Path, *, is_template: bool) -> Iterator[str]:
    """`owner` is the pod or template, `top` the path of `owner`."""
    annotations, context = annotations_of(owner), container.get("securityContext") or {}
    if annotations:
        at, name = top.child("metadata", "annotations"), container.get("name") or ""
        if context.get("seccompProfile") is None and SECCOMP_CONTAINER_PREFIX + name in annotations:
            key = at.key(SECCOMP_CONTAINER_PREFIX + name)
            yield f"{key}: {SECCOMP_ANNOTATION_IGNORED}"
        # Templates only: the annotations of pods become fields, with other warnings.
        annotation = annotations.get(APPARMOR_PREFIX + name)
        if is_template and annotation is not None and context.get("appArmorProfile") is None:
            of_pod = ((owner.get("spec") or {}).get("securityContext") or {}).get("appArmorProfile")
            if of_pod is None or of_pod != apparmor_field(annotation):
                key = at.key(APPARMOR_PREFIX + name)
                yield f'{key}: deprecated since v1.30; use the "appArmorProfile" field instead'
    resources = container.get("resources") or {}
    for name in _BYTES:
        for kind in ("limits", "requests"):
            amounts = resources.get(kind) or {}
            if name in amounts:
                yield from fractional(amounts[name], path.child("resources", kind).key(name))
    seen: set[str] = set()
    for position, variable in enumerate(container.get("env") or ()):
        name, value = variable.get("name") or "", variable.get("value") or ""
        reference = f"$({name})"
        # A duplicate is fine if the later value refers to the earlier variable.
        extends = reference in value and value != reference and variable.get("valueFrom") is None
        if name in seen and not extends:
            hides = f"hides previous definition of {quote(name)}, which may be dropped when using apply"
            yield f"{path.child('env').index(position)}: {hides}"
        seen.add(name)


def fractional_warnings(amounts: Json, path: Path) -> Iterator[str]:
    for name in _BYTES:
        if name in amounts:
            yield from fractional(amounts[name], path.key(name))


def fractional(amount: str, path: Path) -> Iterator[str]:
    if parse_quantity(amount).milli_value() % 1000:
        yield f"{path}: fractional byte value {quote(amount)} is invalid, must be an integer"


def port_warnings(spec: Json, path: Path) -> Iterator[str]:
    seen: dict[str, _SamePort] = {}
    for at, container in containers_with_path(spec, path):
        for position, port in enumerate(container.get("ports") or ()):
            port_path = at.child("ports").index(position)
            if port.get("hostIP") and not port.get("hostPort"):
                yield f"{port_path}: hostIP set without hostPort: {_go_port(port)}"
            same = seen.setdefault(f"{port.get('containerPort')}/{port.get('protocol')}", _SamePort())
            for where, problem in same.clashes(port):
                yield f"{port_path}: {problem} port definition with {where}"
            same.add(port_path, port)


class _SamePort:
    """Definitions of one container port, indexed by host port: few of many definitions conflict."""

    def __init__(self) -> None:
        self._places: list[Path] = []
        self._by_side: dict[tuple[int, str], list[int]] = {}
        self._with_address: dict[int, list[int]] = {}
        self._without_number: dict[int, str] = {}

    def add(self, path: Path, port: Json) -> None:
        number, address = _host_side(port)
        at = len(self._places)
        self._places.append(path)
        self._by_side.setdefault((number, address), []).append(at)
        if not number:
            self._without_number[at] = address
        elif address:
            self._with_address.setdefault(number, []).append(at)

    def clashes(self, port: Json) -> Iterator[tuple[Path, str]]:
        """Yield the path and the kind of conflict of earlier definitions, in order."""
        clashes = self._in_order(*_host_side(port))
        return ((self._places[at], problem) for at, problem in islice(clashes, _MOST_CLASHES))

    def _in_order(self, number: int, address: str) -> Iterator[tuple[int, str]]:
        if not number:
            candidates = self._without_number
            return (
                (at, "duplicate" if candidates.get(at) == address else "overlapping") for at in range(len(self._places))
            )
        ambiguous = self._by_side.get((number, ""), ()) if address else self._with_address.get(number, ())
        return merge(
            ((at, "duplicate") for at in self._by_side.get((number, address), ())),
            ((at, "dangerously ambiguous") for at in ambiguous),
            ((at, "overlapping") for at in self._without_number),
        )


def _host_side(port: Json) -> tuple[int, str]:
    return port.get("hostPort") or 0, port.get("hostIP") or ""


def _go_port(port: Json) -> str:
    """Render a port like Go's %+v."""
    name, protocol, address = (port.get(field) or "" for field in ("name", "protocol", "hostIP"))
    numbers = f"HostPort:{port.get('hostPort') or 0} ContainerPort:{port.get('containerPort') or 0}"
    return f"{{Name:{name} {numbers} Protocol:{protocol} HostIP:{address}}}"


def port_name_warnings(spec: Json, path: Path) -> Iterator[str]:
    first: dict[str, Path] = {}
    for at, container in containers_with_path(spec, path):
        for position, port in enumerate(container.get("ports") or ()):
            if not (name := port.get("name")):
                continue
            port_path = at.child("ports").index(position)
            if (other := first.get(name)) is None:
                first[name] = port_path
            else:
                effect = f"services and probes that select ports by name will use {other}"
                yield f"{port_path}: duplicate port name {quote(name)} with {other}, {effect}"
