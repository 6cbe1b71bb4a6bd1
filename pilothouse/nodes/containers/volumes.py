"""Volume files of a container: ConfigMaps, Secrets, the downward API, and emptyDir."""

from __future__ import annotations

import posixpath
from contextlib import suppress
from dataclasses import field
from typing import Final

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.nodes.containers.budget import Budget, Holding
from pilothouse.nodes.containers.files import FileProblem, Files
from pilothouse.nodes.containers.given import Contents, Objects, in_config_map, in_secret
from pilothouse.nodes.containers.pod_fields import field_text

_TOKEN: Final = b"a simulated token"


async def mount_volumes(files: Files, pod: Json, spec: Json, objects: Objects, budget: Budget) -> None:
    """Write the current volume contents. Files written to an emptyDir persist. Raises Killed."""
    volumes = {each["name"]: each for each in (pod.get("spec") or {}).get("volumes") or ()}
    known: dict[str, Contents] = {}
    with Holding(budget) as held:
        sources = _Sources(pod, objects, budget, held)
        for mount in spec.get("volumeMounts") or ():
            await budget.spend()
            name = mount["name"]
            if name not in known:
                known[name] = await sources.of_volume(volumes.get(name) or {})
            with suppress(FileProblem):
                await _mount(files, mount, known[name], budget)


async def _mount(files: Files, mount: Json, contents: Contents, budget: Budget) -> None:
    base = posixpath.normpath(posixpath.join("/", mount["mountPath"]))
    part = (mount.get("subPath") or "").strip("/")
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
        found: dict[str, bytes] = {}
        for source in (volume.get("projected") or {}).get("sources") or ():
            contents = await self._of_source(source)
            await self.budget.spend(steps=len(contents))
            found |= contents
        return found

    async def _of_source(self, source: Json) -> Contents:
        if given := source.get("configMap"):
            return await self._chosen(given, in_config_map(self.objects, given.get("name")))
        if given := source.get("secret"):
            return await self._chosen(given, in_secret(self.objects, given.get("name")))
        if given := source.get("downwardAPI"):
            return await self._fields(given)
        if given := source.get("serviceAccountToken"):
            return {given["path"]: _TOKEN}
        return {}

    async def _chosen(self, source: Json, contents: Contents) -> Contents:
        """Return the selected keys under their paths; all keys without a selection."""
        if not (items := source.get("items")):
            return contents
        await self.budget.spend(steps=len(items))
        return {each["path"]: contents[each["key"]] for each in items if each["key"] in contents}

    async def _fields(self, source: Json) -> Contents:
        found: dict[str, bytes] = {}
        for item in source.get("items") or ():
            await self.budget.spend()
            if path := (item.get("fieldRef") or {}).get("fieldPath"):
                if path not in self.texts:
                    text = (await field_text(self.pod, path, self.budget)).encode()
                    self.held.add(len(text))
                    self.texts[path] = text
                found[item["path"]] = self.texts[path]
        return found
