"""What a container is given by other objects: the contents of config maps and secrets, as they are now."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final, TypeAlias

from pilothouse.machinery.objects import Json

CONFIG_MAP, SECRET = "configmaps", "secrets"

Contents: TypeAlias = Mapping[str, bytes]
Objects: TypeAlias = Mapping[tuple[str, str], Contents]
"""The contents of each object, by its resource and its name; those that are missing are empty."""
ReadObject: TypeAlias = Callable[[str, str], Awaitable[Json]]
"""Returns the object of a resource, by its name in the pod's namespace; an empty one where there is none."""

_NOTHING: Final[Contents] = {}


async def objects_for(pod: Json, spec: Json, read: ReadObject) -> Objects:
    """Return the contents of all objects that the container's variables and volumes name."""
    wanted = {*_of_variables(spec), *_of_volumes(pod)}
    return {(resource, name): contents_of(await read(resource, name)) for resource, name in sorted(wanted)}


def contents_of(obj: Json) -> Contents:
    """Return the bytes under each key of a config map or a secret."""
    if obj.get("kind") == "Secret":
        return {key: b64decode(value) for key, value in (obj.get("data") or {}).items()}
    plain = {key: str(value).encode() for key, value in (obj.get("data") or {}).items()}
    return plain | {key: b64decode(value) for key, value in (obj.get("binaryData") or {}).items()}


def _of_variables(spec: Json) -> Iterator[tuple[str, str]]:
    for each in spec.get("env") or ():
        yield from _references(each.get("valueFrom") or {}, "configMapKeyRef", "secretKeyRef")
    for each in spec.get("envFrom") or ():
        yield from _references(each, "configMapRef", "secretRef")


def _of_volumes(pod: Json) -> Iterator[tuple[str, str]]:
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        yield from _references(volume, "configMap", "secret", name="secretName")
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _references(source, "configMap", "secret")


def _references(of: Json, config_map: str, secret: str, *, name: str = "name") -> Iterator[tuple[str, str]]:
    if named := (of.get(config_map) or {}).get("name"):
        yield CONFIG_MAP, named
    if named := (of.get(secret) or {}).get(name):
        yield SECRET, named


def in_config_map(objects: Objects, name: str | None) -> Contents:
    return objects.get((CONFIG_MAP, name or ""), _NOTHING)


def in_secret(objects: Objects, name: str | None) -> Contents:
    return objects.get((SECRET, name or ""), _NOTHING)
