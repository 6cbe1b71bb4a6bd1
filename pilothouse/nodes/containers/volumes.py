"""The files that volumes bring into a container: config maps, secrets, the pod's own fields, and empty directories."""

from __future__ import annotations

import posixpath
from contextlib import suppress
from typing import Final

from pilothouse.machinery.objects import Json
from pilothouse.nodes.containers.files import FileProblem, Files
from pilothouse.nodes.containers.given import Contents, Objects, in_config_map, in_secret
from pilothouse.nodes.containers.pod_fields import field_text

_TOKEN: Final = b"a simulated token"


def mount_volumes(files: Files, pod: Json, spec: Json, objects: Objects) -> None:
    """Writes what the volumes have now. What a container wrote into an empty directory stays."""
    volumes = {each["name"]: each for each in (pod.get("spec") or {}).get("volumes") or ()}
    for mount in spec.get("volumeMounts") or ():
        contents = _contents(pod, volumes.get(mount["name"]) or {}, objects)
        with suppress(FileProblem):
            _mount(files, mount, contents)


def _mount(files: Files, mount: Json, contents: Contents) -> None:
    base = posixpath.normpath(posixpath.join("/", mount["mountPath"]))
    part = (mount.get("subPath") or "").strip("/")
    if part in contents:  # a single file
        files.make_directory(posixpath.dirname(base), parents=True)
        files.write(base, contents[part])
        return
    files.make_directory(base, parents=True)
    prefix = f"{part}/" if part else ""
    for path, data in contents.items():
        if path.startswith(prefix):
            target = posixpath.normpath(posixpath.join(base, path[len(prefix) :]))
            files.make_directory(posixpath.dirname(target), parents=True)
            files.write(target, data)


def _contents(pod: Json, volume: Json, objects: Objects) -> Contents:
    """Return the files of the volume by their paths in it."""
    if source := volume.get("configMap"):
        return _chosen(source, in_config_map(objects, source.get("name")))
    if source := volume.get("secret"):
        return _chosen(source, in_secret(objects, source.get("secretName")))
    if source := volume.get("downwardAPI"):
        return _fields(pod, source)
    found: dict[str, bytes] = {}
    for source in (volume.get("projected") or {}).get("sources") or ():
        found |= _projected(pod, source, objects)
    return found


def _projected(pod: Json, source: Json, objects: Objects) -> Contents:
    if given := source.get("configMap"):
        return _chosen(given, in_config_map(objects, given.get("name")))
    if given := source.get("secret"):
        return _chosen(given, in_secret(objects, given.get("name")))
    if given := source.get("downwardAPI"):
        return _fields(pod, given)
    if given := source.get("serviceAccountToken"):
        return {given["path"]: _TOKEN}
    return {}


def _chosen(source: Json, contents: Contents) -> Contents:
    """Return the keys that are asked for under their paths; all, if none is."""
    if not (items := source.get("items")):
        return contents
    return {each["path"]: contents[each["key"]] for each in items if each["key"] in contents}


def _fields(pod: Json, source: Json) -> Contents:
    named = ((each["path"], (each.get("fieldRef") or {}).get("fieldPath")) for each in source.get("items") or ())
    return {path: field_text(pod, field).encode() for path, field in named if field}
