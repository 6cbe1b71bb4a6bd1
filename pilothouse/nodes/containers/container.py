"""A container from the view of its processes: files, environment, names.

References such as $(NAME) are expanded as the kubelet does. Linux' limits apply to variables and arguments: 128 KiB per
string, 2 MiB in total.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, part, uid_of
from pilothouse.nodes.containers.budget import Budget
from pilothouse.nodes.containers.files import Files, Space
from pilothouse.nodes.containers.resource_fields import resource_text
from pilothouse.nodes.containers.service_variables import linked_services, variables_of
from pilothouse.nodes.containers.volumes import (
    Mounting,
    Objects,
    field_text,
    in_config_map,
    in_secret,
    mount_volumes,
)

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LONGEST: Final = 128 * 1024
_MOST: Final = 2 << 20
_POINTER: Final = 9
"""Overhead of each string in bytes."""
_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^()$]{0,1024})\))")


@dataclass(frozen=True, slots=True)
class Identity:
    """User and groups of the processes."""

    user: int = 0
    group: int = 0
    groups: tuple[int, ...] = (0,)
    """All groups in ascending order, including `group`."""


def identity_of(pod: Json, spec: Json) -> Identity:
    """Return the identity that the security contexts request; images are assumed to run as root."""
    shared, own = part(pod, "spec", "securityContext"), spec.get("securityContext") or {}

    def number(field: str) -> int:
        value = own.get(field)
        return int((shared.get(field) if value is None else value) or 0)

    group, shared_group = number("runAsGroup"), shared.get("fsGroup")
    groups = {group, *(shared.get("supplementalGroups") or ()), *(() if shared_group is None else (shared_group,))}
    return Identity(number("runAsUser"), group, tuple(sorted(groups)))


@dataclass(slots=True)
class Container:
    hostname: str
    environment: dict[str, str]
    files: Files
    identity: Identity
    directory: str = "/"
    has_unknown_programs: bool = False
    """Whether a script called a program that is not simulated."""


def spec_of(pod: Json, name: str) -> Json | None:
    """Return the container with this name in the pod's spec, of any kind."""
    spec = pod.get("spec") or {}
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            if container.get("name") == name:
                found: Json = container
                return found
    return None


class Containers:
    """Files of containers with executed commands, kept until the pod is gone."""

    def __init__(self) -> None:
        self._space = Space()
        self._pods: dict[str, tuple[Space, dict[str, Files]]] = {}

    async def enter(self, pod: Json, spec: Json, objects: Objects, budget: Budget) -> Container:
        """Return the current container; its files persist between commands.

        The pod must exist. Raises ArgumentsTooLong or Killed.
        """
        space, files = self._pods.setdefault(uid_of(pod), (self._space.part(), {}))
        if spec["name"] not in files:
            files[spec["name"]] = _new_files(pod, space)
        return await _container(pod, spec, objects, files[spec["name"]], budget)

    def has_files(self, pod: Json, spec: Json) -> bool:
        """Return whether a command has run in the container."""
        return spec["name"] in self._pods.get(uid_of(pod), (None, {}))[1]

    @asynccontextmanager
    async def start(self, pod: Json, spec: Json, objects: Objects, budget: Budget) -> AsyncIterator[Container]:
        """Yield the container as at its start, with private files. Raises ArgumentsTooLong or Killed."""
        files = _new_files(pod, self._space.part())
        try:
            yield await _container(pod, spec, objects, files, budget)
        finally:
            files.release()

    def forget(self, uid: str) -> None:
        """Drop the files of a deleted pod."""
        _, files = self._pods.pop(uid, (None, {}))
        for file in files.values():
            file.release()


def _new_files(pod: Json, space: Space) -> Files:
    name, address = hostname_of(pod), part(pod, "status").get("podIP") or "127.0.0.1"
    hosts = f"127.0.0.1\tlocalhost\n{address}\t{name}\n"
    return Files(space, {"/etc/hostname": f"{name}\n".encode(), "/etc/hosts": hosts.encode()})


async def _container(pod: Json, spec: Json, objects: Objects, files: Files, budget: Budget) -> Container:
    environment = await environment_of(pod, spec, objects, budget)

    def sub_path(mount: Json) -> str:
        return mount.get("subPath") or expand(mount.get("subPathExpr") or "", environment)

    await mount_volumes(files, Mounting(pod, spec, objects, sub_path), budget)
    return Container(hostname_of(pod), environment, files, identity_of(pod, spec), spec.get("workingDir") or "/")


class ArgumentsTooLong(Exception):
    """The strings exceed the kernel's limit for a new program."""

    def __init__(self) -> None:
        super().__init__("argument list too long")


class ArgumentSizes:
    """Sums the strings of a program start."""

    def __init__(self) -> None:
        self._total = 0

    def add(self, size: int) -> None:
        """Add a string of this size. Raises ArgumentsTooLong."""
        self._total += size + _POINTER
        if size >= _LONGEST or self._total > _MOST:
            raise ArgumentsTooLong


def check_arguments(words: Iterable[str]) -> None:
    """Check the words against the limits. Raises ArgumentsTooLong."""
    sizes = ArgumentSizes()
    for word in words:
        sizes.add(len(word))


def hostname_of(pod: Json) -> str:
    return part(pod, "spec").get("hostname") or name_of(pod)[:63].rstrip("-.")


def first_variables(pod: Json) -> dict[str, str]:
    """Return the variables common to all containers."""
    return {"PATH": _PATH, "HOSTNAME": hostname_of(pod), "HOME": "/root"}


async def environment_of(pod: Json, spec: Json, objects: Objects, budget: Budget) -> dict[str, str]:
    """Return the variables of the container. Raises ArgumentsTooLong or Killed."""
    variables, sizes = first_variables(pod), ArgumentSizes()
    services: dict[str, str] = {}
    for service in linked_services(objects.services, pod):
        await budget.spend(steps=len(service["spec"]["ports"]))
        for name, text in variables_of(service):
            sizes.add(len(name) + len(text))
            services[name] = text
    known = ChainMap(variables, services)
    for source in spec.get("envFrom") or ():
        config_map, secret = source.get("configMapRef") or {}, source.get("secretRef") or {}
        prefix = source.get("prefix") or ""
        for contents in (in_config_map(objects, config_map.get("name")), in_secret(objects, secret.get("name"))):
            for key, data in contents.items():
                await budget.spend(data=len(data), steps=0)
                sizes.add(len(prefix) + len(key) + len(data))
                variables[prefix + key] = data.decode("utf-8", "replace")
    for variable in spec.get("env") or ():
        value = await _value(pod, spec, variable, objects, budget)
        await budget.spend(data=len(value or ""), steps=0)
        if value is not None:
            variables[variable["name"]] = expanded = expand(value, known)
            sizes.add(len(variable["name"]) + len(expanded))
    return {**variables, **{name: text for name, text in services.items() if name not in variables}}


async def _value(pod: Json, spec: Json, variable: Json, objects: Objects, budget: Budget) -> str | None:
    """Return the unexpanded value of a variable; None if its source is missing."""
    if "valueFrom" not in variable:
        return variable.get("value") or ""
    source = variable["valueFrom"]
    if field := part(source, "fieldRef").get("fieldPath"):
        return await field_text(pod, field, budget)
    if selector := source.get("resourceFieldRef"):
        container = spec_of(pod, selector.get("containerName") or spec["name"]) or spec
        return resource_text(container, selector, objects.allocatable)
    config_map, secret = source.get("configMapKeyRef") or {}, source.get("secretKeyRef") or {}
    contents = in_config_map(objects, config_map.get("name")) if config_map else in_secret(objects, secret.get("name"))
    value = contents.get((config_map or secret).get("key") or "")
    return None if value is None else value.decode("utf-8", "replace")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace $(NAME) by the value of a known variable, and $$ by $. Raises ArgumentsTooLong."""
    if "$" not in text:
        return text
    expanded_size(text, lambda name: len(variables[name]) if name in variables else None)
    return _REFERENCE.sub(lambda match: "$" if match[1] is None else variables.get(match[1], match[0]), text)


def sub_path_problem(expression: str, variables: Mapping[str, str]) -> str:
    """Return the problem with a subPathExpr in a kubelet's words; empty if valid. Raises ArgumentsTooLong."""
    names = {match[1] for match in _REFERENCE.finditer(expression) if match[1] is not None}
    if missing := sorted(name for name in names if not variables.get(name)):
        return f"missing value for {', '.join(missing)}"
    path = expand(expression, variables)
    if path.startswith("/"):
        return f"error SubPath `{path}` must not be an absolute path"
    if ".." in path.split("/"):
        return f"unable to provision SubPath `{path}`: must not contain '..'"
    return ""


def expanded_size(text: str, size_of: Callable[[str], int | None]) -> int:
    """Return the length of the expanded text. Raises ArgumentsTooLong."""
    size = len(text)
    if size < _LONGEST:
        for match in _REFERENCE.finditer(text):
            value = 1 if match[1] is None else size_of(match[1])
            size += 0 if value is None else value - len(match[0])
    if size >= _LONGEST:
        raise ArgumentsTooLong
    return size
