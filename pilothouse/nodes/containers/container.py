"""A container from the view of its processes: files, environment, names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, part, uid_of
from pilothouse.nodes.containers.budget import Budget
from pilothouse.nodes.containers.environment import environment_of, hostname_of
from pilothouse.nodes.containers.files import Files, Space
from pilothouse.nodes.containers.given import Objects
from pilothouse.nodes.containers.volumes import mount_volumes


@dataclass(slots=True)
class Container:
    hostname: str
    environment: dict[str, str]
    files: Files
    directory: str = "/"


def spec_of(pod: Json, name: str) -> Json | None:
    """Return the container with this name in the pod's spec, of any kind."""
    spec = pod.get("spec") or {}
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for each in spec.get(kind) or ():
            if each.get("name") == name:
                found: Json = each
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
        for each in files.values():
            each.release()


def _new_files(pod: Json, space: Space) -> Files:
    name, address = hostname_of(pod), part(pod, "status").get("podIP") or "127.0.0.1"
    hosts = f"127.0.0.1\tlocalhost\n{address}\t{name}\n"
    return Files(space, {"/etc/hostname": f"{name}\n".encode(), "/etc/hosts": hosts.encode()})


async def _container(pod: Json, spec: Json, objects: Objects, files: Files, budget: Budget) -> Container:
    await mount_volumes(files, pod, spec, objects, budget)
    environment = await environment_of(pod, spec, objects, budget)
    return Container(hostname_of(pod), environment, files, spec.get("workingDir") or "/")
