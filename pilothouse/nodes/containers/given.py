"""Contents of ConfigMaps and Secrets for a container."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final, TypeAlias

from pilothouse.machinery.objects import Json, items
from pilothouse.nodes.containers.budget import Budget

CONFIG_MAP, SECRET = "configmaps", "secrets"

Contents: TypeAlias = Mapping[str, bytes]
Objects: TypeAlias = Mapping[tuple[str, str], Contents]
"""(resource, name) → contents; missing objects are empty."""
ReadObject: TypeAlias = Callable[[str, str], Awaitable[Json]]
"""Returns the object by resource and name, from the pod's namespace; empty if missing."""

_NOTHING: Final[Contents] = {}


async def objects_for(pod: Json, spec: Json, read: ReadObject, budget: Budget) -> Objects:
    """Return the contents of all objects that the container references. Raises Killed."""
    found: dict[tuple[str, str], Contents] = {}
    for references in (_of_variables(spec), _of_volumes(pod)):
        for resource, name in references:
            await budget.spend()
            if (resource, name) not in found:
                contents = contents_of(await budget.outside(read(resource, name)))
                size = sum(map(len, contents)) + sum(map(len, contents.values()))
                await budget.spend(data=size)
                budget.hold(size)
                found[resource, name] = contents
    return found


def contents_of(obj: Json) -> Contents:
    """Return key → bytes of a ConfigMap or Secret."""
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
    return objects.get((CONFIG_MAP, name or ""), _NOTHING)


def in_secret(objects: Objects, name: str | None) -> Contents:
    return objects.get((SECRET, name or ""), _NOTHING)
