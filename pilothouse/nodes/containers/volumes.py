"""Contents of a container's volumes and variables: ConfigMaps, Secrets, the downward API, and emptyDir."""

from __future__ import annotations

import posixpath
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Final, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, annotations_of, items, labels_of, name_of, namespace_of, uid_of
from pilothouse.nodes.containers.budget import Budget, Holding
from pilothouse.nodes.containers.files import FileProblem, Files
from pilothouse.nodes.containers.resource_fields import resource_text

CONFIG_MAP, SECRET = "configmaps", "secrets"

Contents: TypeAlias = Mapping[str, bytes]
ReadObject: TypeAlias = Callable[[str, str], Awaitable[Json]]
"""Returns the object by resource and name, from the pod's namespace; empty if missing."""

_NOTHING: Final[Contents] = {}


@dataclass(frozen=True, slots=True)
class Objects:
    """The API objects that a container depends on."""

    contents: Mapping[tuple[str, str], Contents] = field(default_factory=dict)
    """(resource, name) → contents of a ConfigMap or Secret; missing objects are empty."""
    services: Sequence[Json] = ()
    """Services of the pod's namespace, and the API server's."""
    allocatable: Mapping[str, str] = field(default_factory=dict)
    """Allocatable resources of the node."""


_MOST_SORTED: Final = 10_000
"""Above this number, labels are listed in stored order, not sorted."""
_TOKEN: Final = b"a simulated token"


async def contents_for(pod: Json, spec: Json, read: ReadObject, budget: Budget) -> Mapping[tuple[str, str], Contents]:
    """Return the contents of all ConfigMaps and Secrets that the container references. Raises Killed."""
    objects: dict[tuple[str, str], Contents] = {}
    for references in (_of_variables(spec), _of_volumes(pod)):
        for resource, name in references:
            await budget.spend()
            if (resource, name) not in objects:
                contents = contents_of(await budget.outside(read(resource, name)))
                size = sum(map(len, contents)) + sum(map(len, contents.values()))
                await budget.spend(data=size)
                budget.hold(size)
                objects[resource, name] = contents
    return objects


def contents_of(obj: Json) -> Contents:
    """Return key → bytes of a ConfigMap or Secret."""
    if obj.get("kind") == "Secret":
        return {key: b64decode(value) for key, value in (obj.get("data") or {}).items()}
    plain = {key: str(value).encode() for key, value in (obj.get("data") or {}).items()}
    return plain | {key: b64decode(value) for key, value in (obj.get("binaryData") or {}).items()}


def _of_variables(spec: Json) -> Iterator[tuple[str, str]]:
    for variable in spec.get("env") or ():
        yield from _references(variable.get("valueFrom") or {}, "configMapKeyRef", "secretKeyRef")
    for source in spec.get("envFrom") or ():
        yield from _references(source, "configMapRef", "secretRef")


def _of_volumes(pod: Json) -> Iterator[tuple[str, str]]:
    for volume in items(pod, "spec", "volumes"):
        yield from _references(volume, "configMap", "secret", name="secretName")
        for source in items(volume, "projected", "sources"):
            yield from _references(source, "configMap", "secret")


def _references(of: Json, config_map: str, secret: str, *, name: str = "name") -> Iterator[tuple[str, str]]:
    if named := (of.get(config_map) or {}).get("name"):
        yield CONFIG_MAP, named
    if named := (of.get(secret) or {}).get(name):
        yield SECRET, named


def in_config_map(objects: Objects, name: str | None) -> Contents:
    return objects.contents.get((CONFIG_MAP, name or ""), _NOTHING)


def in_secret(objects: Objects, name: str | None) -> Contents:
    return objects.contents.get((SECRET, name or ""), _NOTHING)


async def field_text(pod: Json, path: str, budget: Budget) -> str:
    """Return the text of the field; empty for unknown fields. Raises Killed."""
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    simple = {
        "metadata.name": name_of(pod),
        "metadata.namespace": namespace_of(pod),
        "metadata.uid": uid_of(pod),
        "spec.nodeName": spec.get("nodeName"),
        "spec.serviceAccountName": spec.get("serviceAccountName"),
        "status.hostIP": status.get("hostIP"),
        "status.hostIPs": _addresses(status, "hostIPs"),
        "status.podIP": status.get("podIP"),
        "status.podIPs": _addresses(status, "podIPs"),
    }
    if path in simple:
        return str(simple[path] or "")
    for prefix, values in (("metadata.labels", labels_of(pod)), ("metadata.annotations", annotations_of(pod))):
        if path == prefix:
            pairs: Iterable[tuple[str, str]] = values.items()
            lines = []
            for name, value in sorted(pairs) if len(values) <= _MOST_SORTED else pairs:
                await budget.spend(data=len(value))
                quoted = value.replace("\\", "\\\\").replace('"', '\\"')
                lines.append(f'{name}="{quoted}"')
            return "\n".join(lines)
        if path.startswith(f"{prefix}['") and path.endswith("']"):
            return str(values.get(path[len(prefix) + 2 : -2]) or "")
    return ""


def _addresses(status: Json, field: str) -> str:
    return ",".join(address.get("ip") or "" for address in status.get(field) or ())


@dataclass(frozen=True, slots=True)
class Mounting:
    """The volumes of a container."""

    pod: Json
    spec: Json
    objects: Objects
    sub_path: Callable[[Json], str]
    """Mount → path in the volume."""


async def mount_volumes(files: Files, mounting: Mounting, budget: Budget) -> None:
    """Write the current volume contents. Files written to an emptyDir persist. Raises Killed."""
    pod, spec = mounting.pod, mounting.spec
    volumes = {volume["name"]: volume for volume in (pod.get("spec") or {}).get("volumes") or ()}
    contents: dict[str, Contents] = {}
    with Holding(budget) as held:
        sources = _Sources(pod, spec, mounting.objects, budget, held)
        for mount in spec.get("volumeMounts") or ():
            await budget.spend()
            name = mount["name"]
            if name not in contents:
                contents[name] = await sources.of_volume(volumes.get(name) or {})
            with suppress(FileProblem):
                await _mount(files, mount, mounting.sub_path(mount), contents[name], budget)


async def _mount(files: Files, mount: Json, part: str, contents: Contents, budget: Budget) -> None:
    base = posixpath.normpath(posixpath.join("/", mount["mountPath"]))
    part = part.strip("/")
    if part in contents:  # a single file
        files.make_directory(posixpath.dirname(base), parents=True)
        files.write(base, contents[part])
        return
    files.make_directory(base, parents=True)
    prefix = f"{part}/" if part else ""
    for path, data in contents.items():
        await budget.spend(data=len(path))
        if path.startswith(prefix):
            target = posixpath.normpath(posixpath.join(base, path[len(prefix) :]))
            files.make_directory(posixpath.dirname(target), parents=True)
            files.write(target, data)


@dataclass(slots=True)
class _Sources:
    pod: Json
    spec: Json
    objects: Objects
    budget: Budget
    held: Holding
    texts: dict[str, bytes] = field(default_factory=dict)
    """Pod field path → text."""

    async def of_volume(self, volume: Json) -> Contents:
        """Return path → contents of the volume."""
        if (secret := volume.get("secret")) is not None:
            return await self._of_source({"secret": {**secret, "name": secret.get("secretName")}})
        if "projected" not in volume:
            return await self._of_source(volume)
        files: dict[str, bytes] = {}
        for source in (volume.get("projected") or {}).get("sources") or ():
            contents = await self._of_source(source)
            await self.budget.spend(steps=len(contents))
            files |= contents
        return files

    async def _of_source(self, source: Json) -> Contents:
        if projection := source.get("configMap"):
            return await self._chosen(projection, in_config_map(self.objects, projection.get("name")))
        if projection := source.get("secret"):
            return await self._chosen(projection, in_secret(self.objects, projection.get("name")))
        if projection := source.get("downwardAPI"):
            return await self._fields(projection)
        if projection := source.get("serviceAccountToken"):
            return {projection["path"]: _TOKEN}
        return {}

    async def _chosen(self, source: Json, contents: Contents) -> Contents:
        """Return the selected keys under their paths; all keys without a selection."""
        if not (items := source.get("items")):
            return contents
        await self.budget.spend(steps=len(items))
        return {item["path"]: contents[item["key"]] for item in items if item["key"] in contents}

    async def _fields(self, source: Json) -> Contents:
        files: dict[str, bytes] = {}
        for item in source.get("items") or ():
            await self.budget.spend()
            if path := (item.get("fieldRef") or {}).get("fieldPath"):
                if path not in self.texts:
                    text = (await field_text(self.pod, path, self.budget)).encode()
                    self.held.add(len(text))
                    self.texts[path] = text
                files[item["path"]] = self.texts[path]
            elif selector := item.get("resourceFieldRef"):
                container = self._container(selector.get("containerName") or "")
                files[item["path"]] = resource_text(container, selector, self.objects.allocatable).encode()
        return files

    def _container(self, name: str) -> Json:
        if not name or name == self.spec.get("name"):
            return self.spec
        spec = self.pod.get("spec") or {}
        containers = (each for kind in ("containers", "initContainers") for each in spec.get(kind) or ())
        return next((each for each in containers if each.get("name") == name), {})
