"""A container as what runs in it sees it: its files, its environment, its names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, uid_of
from pilothouse.nodes.containers.files import Files, Space
from pilothouse.nodes.containers.given import Objects, in_config_map, in_secret
from pilothouse.nodes.containers.pod_fields import field_text
from pilothouse.nodes.containers.volumes import mount_volumes

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(slots=True)
class Container:
    hostname: str
    environment: dict[str, str]
    files: Files
    directory: str = "/"


def spec_of(pod: Json, name: str) -> Json | None:
    """Return the container of this name in the pod's spec, of whatever kind."""
    spec = pod.get("spec") or {}
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for each in spec.get(kind) or ():
            if each.get("name") == name:
                found: Json = each
                return found
    return None


def hostname_of(pod: Json) -> str:
    return (pod.get("spec") or {}).get("hostname") or name_of(pod)[:63].rstrip("-.")


def environment_of(pod: Json, spec: Json, objects: Objects) -> dict[str, str]:
    """Return the variables of the container."""
    found = {"PATH": _PATH, "HOSTNAME": hostname_of(pod), "HOME": "/root"}
    for each in spec.get("envFrom") or ():
        config_map, secret = each.get("configMapRef") or {}, each.get("secretRef") or {}
        given = {**in_config_map(objects, config_map.get("name")), **in_secret(objects, secret.get("name"))}
        found |= {f"{each.get('prefix') or ''}{key}": value.decode("utf-8", "replace") for key, value in given.items()}
    for each in spec.get("env") or ():
        value = _value_from(pod, each["valueFrom"], objects) if "valueFrom" in each else each.get("value") or ""
        if value is not None:
            found[each["name"]] = _expanded(value, found)
    return found


def _value_from(pod: Json, source: Json, objects: Objects) -> str | None:
    """Return the value that a variable has from elsewhere; None where there is none."""
    if field := (source.get("fieldRef") or {}).get("fieldPath"):
        return field_text(pod, field)
    config_map, secret = source.get("configMapKeyRef") or {}, source.get("secretKeyRef") or {}
    contents = in_config_map(objects, config_map.get("name")) if config_map else in_secret(objects, secret.get("name"))
    found = contents.get((config_map or secret).get("key") or "")
    return None if found is None else found.decode("utf-8", "replace")


def _expanded(value: str, known: Mapping[str, str]) -> str:
    for name, text in known.items():
        value = value.replace(f"$({name})", text)
    return value


class Containers:
    """The containers that somebody has looked into, each as long as its pod is there."""

    def __init__(self) -> None:
        self._space = Space()
        self._files: dict[tuple[str, str], Files] = {}

    def enter(self, pod: Json, spec: Json, objects: Objects) -> Container:
        """Return the container as it is now. Its files stay from one time to the next."""
        key = (uid_of(pod), spec["name"])
        if key not in self._files:
            self._files[key] = new_files(pod, self._space)
        mount_volumes(self._files[key], pod, spec, objects)
        return _container(pod, spec, objects, self._files[key])

    def forget(self, uid: str) -> None:
        """Drops the files of a pod that is gone."""
        for key in [key for key in self._files if key[0] == uid]:
            self._files.pop(key).release()


def fresh_container(pod: Json, spec: Json, objects: Objects) -> Container:
    """Return the container as it is when it starts. Nobody else sees what is written in it."""
    files = new_files(pod, Space())
    mount_volumes(files, pod, spec, objects)
    return _container(pod, spec, objects, files)


def new_files(pod: Json, space: Space) -> Files:
    files = Files(space)
    address = (pod.get("status") or {}).get("podIP") or "127.0.0.1"
    name = hostname_of(pod)
    files.write("/etc/hostname", f"{name}\n".encode())
    files.write("/etc/hosts", f"127.0.0.1\tlocalhost\n{address}\t{name}\n".encode())
    return files


def _container(pod: Json, spec: Json, objects: Objects, files: Files) -> Container:
    return Container(hostname_of(pod), environment_of(pod, spec, objects), files, spec.get("workingDir") or "/")
