"""A container as what runs in it sees it: its files, its environment, its names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, annotations_of, labels_of, name_of, namespace_of, uid_of
from pilothouse.nodes.containers.files import Files, Space

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


def environment_of(pod: Json, spec: Json) -> dict[str, str]:
    """Return the variables of the container. Those from other objects are not known here, and left out."""
    found = {"PATH": _PATH, "HOSTNAME": hostname_of(pod), "HOME": "/root"}
    for each in spec.get("env") or ():
        if (field := ((each.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath")) is not None:
            found[each["name"]] = _field(pod, field)
        elif "valueFrom" not in each:
            found[each["name"]] = _expanded(each.get("value") or "", found)
    return found


def _expanded(value: str, known: Mapping[str, str]) -> str:
    for name, text in known.items():
        value = value.replace(f"$({name})", text)
    return value


def _field(pod: Json, path: str) -> str:
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    simple = {
        "metadata.name": name_of(pod),
        "metadata.namespace": namespace_of(pod),
        "metadata.uid": uid_of(pod),
        "spec.nodeName": spec.get("nodeName"),
        "spec.serviceAccountName": spec.get("serviceAccountName"),
        "status.hostIP": status.get("hostIP"),
        "status.podIP": status.get("podIP"),
    }
    if path in simple:
        return str(simple[path] or "")
    for prefix, values in (("metadata.labels", labels_of(pod)), ("metadata.annotations", annotations_of(pod))):
        if path.startswith(f"{prefix}['") and path.endswith("']"):
            return str(values.get(path[len(prefix) + 2 : -2]) or "")
    return ""


class Containers:
    """The containers that somebody has looked into, each as long as its pod is there."""

    def __init__(self) -> None:
        self._space = Space()
        self._files: dict[tuple[str, str], Files] = {}

    def enter(self, pod: Json, spec: Json) -> Container:
        """Return the container as it is now. Its files stay from one time to the next."""
        key = (uid_of(pod), spec["name"])
        if key not in self._files:
            self._files[key] = self._new_files(pod)
        return Container(hostname_of(pod), environment_of(pod, spec), self._files[key], spec.get("workingDir") or "/")

    def forget(self, uid: str) -> None:
        """Drops the files of a pod that is gone."""
        for key in [key for key in self._files if key[0] == uid]:
            self._files.pop(key).release()

    def _new_files(self, pod: Json) -> Files:
        files = Files(self._space)
        address = (pod.get("status") or {}).get("podIP") or "127.0.0.1"
        name = hostname_of(pod)
        files.write("/etc/hostname", f"{name}\n".encode())
        files.write("/etc/hosts", f"127.0.0.1\tlocalhost\n{address}\t{name}\n".encode())
        return files
