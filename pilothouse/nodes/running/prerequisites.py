"""Prerequisites of a pod: Secrets, ConfigMaps and claims of its volumes and variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pilothouse.client.clock import Clock
from pilothouse.client.rest.client import Client
from pilothouse.controllers.resources import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, SECRETS
from pilothouse.kinds.references import claim_name
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.event_loop import yield_periodically, yield_to_loop
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, items, namespace_of, part
from pilothouse.nodes.containers.budget import Killed, Limits
from pilothouse.nodes.containers.container import (
    ArgumentSizes,
    ArgumentsTooLong,
    environment_of,
    expanded_size,
    first_variables,
    sub_path_problem,
)
from pilothouse.nodes.kubelet.host import Host
from pilothouse.nodes.pods.state import containers_of
from pilothouse.nodes.pods.world import Obstacle

_REMEMBERED = 5.0
"""Seconds for which an existing object is assumed to persist."""
_NOT_STARTED = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: exec: {}: {}"
)
_SHOWN = 256
_WORTH_A_TURN = 4096
_ADDRESSES: Json = {
    field: [{"ip": "0.0.0.0"}] if field.endswith("s") else "0.0.0.0"
    for field in ("hostIP", "hostIPs", "podIP", "podIPs")
}
_LIMITS = Limits(steps=10_000, wall_seconds=30.0)
_WORDS = {CONFIG_MAPS: ("configmap", "ConfigMap"), SECRETS: ("secret", "Secret")}


@dataclass(frozen=True, slots=True)
class _Need:
    resource: GroupVersionResource
    name: str
    container: str = ""
    volume: str = ""
    key: str = ""


class Prerequisites:
    def __init__(self, client: Client, clock: Clock, host: Host) -> None:
        self._client, self._host = client, host
        self._found: BoundedCache[tuple[str, str, str], frozenset[str]] = BoundedCache(
            entries=4096, total_bytes=1 << 20, now=clock.now
        )

    async def obstacle(self, pod: Json) -> Obstacle | None:
        """Return the first missing prerequisite of the pod or a container. Raises StatusError or ConnectionFailed."""
        namespace, looked_at = namespace_of(pod), set[_Need]()
        async for need in yield_periodically(needs_of(pod)):
            alike = replace(need, container="", volume="")
            if alike not in looked_at and (message := await self._missing(need, namespace)) is not None:
                return Obstacle(need.container, message)
            looked_at.add(alike)
        async for container in yield_periodically(containers_of(pod)):
            if message := await self._wrong_sub_path(pod, container.spec):
                return Obstacle(container.name, message)
        return None

    async def _wrong_sub_path(self, pod: Json, spec: Json) -> str:
        """Return the problem with the container's first invalid subPathExpr; empty if all are valid."""
        mounts = [mount for mount in spec.get("volumeMounts") or () if mount.get("subPathExpr")]
        if not mounts:
            return ""
        # The pod has no addresses before its sandbox; variables that refer to them are not missing.
        addressed = {**pod, "status": {**_ADDRESSES, **(pod.get("status") or {})}}
        try:
            async with self._host.machine.process(_LIMITS) as budget:
                objects = await self._host.objects_for(pod, spec, budget)
                variables = await environment_of(addressed, spec, objects, budget)
                for mount in mounts:
                    await budget.spend(data=len(mount["subPathExpr"]))
                    if problem := sub_path_problem(mount["subPathExpr"], variables):
                        return problem
        except (ArgumentsTooLong, Killed):
            pass  # the container fails to start, or its commands are killed
        return ""

    async def _missing(self, need: _Need, namespace: str) -> str | None:
        if need.resource == PERSISTENT_VOLUME_CLAIMS:
            before = (
                f"Unable to attach or mount volumes: unmounted volumes=[{need.volume}], unattached volumes=[],"
                f" failed to process volumes=[{need.volume}]: error processing PVC {namespace}/{need.name}:"
            )
            try:
                claim = await self._client.for_resource(need.resource, namespace=namespace).get(need.name)
            except NotFound:
                return f'{before} failed to fetch PVC from API server: persistentvolumeclaims "{need.name}" not found'
            bound = part(claim, "status").get("phase") == "Bound"
            return None if bound else f"{before} PVC is not bound"
        word, kind = _WORDS[need.resource]
        keys = await self._keys(need, namespace)
        before = f'MountVolume.SetUp failed for volume "{need.volume}" : ' if need.volume else ""
        if keys is None:
            return f'{before}{word} "{need.name}" not found'
        if need.key and need.key not in keys:
            return f"couldn't find key {need.key} in {kind} {namespace}/{need.name}"
        return None

    async def _keys(self, need: _Need, namespace: str) -> frozenset[str] | None:
        """Return the keys of a Secret or ConfigMap; None if missing."""
        key = (need.resource.resource, namespace, need.name)
        remembered = self._found.get(key)
        if remembered is not None and (not need.key or need.key in remembered):
            return remembered
        try:
            obj = await self._client.for_resource(need.resource, namespace=namespace).get(need.name)
        except NotFound:
            return None
        keys = frozenset({*(obj.get("data") or ()), *(obj.get("binaryData") or ())})
        self._found.put(key, keys, size=sum(map(len, keys)) + sum(map(len, key)), ttl=_REMEMBERED)
        return keys


async def start_errors(pod: Json) -> dict[str, str]:
    """Return container → reason why the kernel cannot start it. Values from other objects count as empty."""
    errors: dict[str, str] = {}
    async for container in yield_periodically(containers_of(pod)):
        try:
            spec = container.spec
            # Sum the start strings of the container.
            sizes = ArgumentSizes()
            known = {name: len(value) for name, value in first_variables(pod).items()}
            async for variable in yield_periodically(spec.get("env") or ()):
                name = variable["name"]
                known[name] = await _expanded_size(variable.get("value") or "", known)
                sizes.add(len(name) + known[name])
            async for word in yield_periodically((*(spec.get("command") or ()), *(spec.get("args") or ()))):
                sizes.add(await _expanded_size(word, known))
        except ArgumentsTooLong as error:
            errors[container.name] = _NOT_STARTED.format(
                quote((container.spec.get("command") or [""])[0][:_SHOWN]), error
            )
    return errors


async def _expanded_size(text: str, known: Mapping[str, int]) -> int:
    if len(text) > _WORTH_A_TURN:
        await yield_to_loop()
    return expanded_size(text, known.get)


def needs_of(pod: Json) -> Iterator[_Need]:
    """Yield the needs of volumes, which block all containers, then the needs of container variables."""
    for volume in items(pod, "spec", "volumes"):
        name = volume.get("name") or ""
        if claim := claim_name(pod, volume):
            yield _Need(PERSISTENT_VOLUME_CLAIMS, claim, volume=name)
        for source in (volume, *items(volume, "projected", "sources")):
            secret, config_map = source.get("secret"), source.get("configMap")
            if secret is not None and not secret.get("optional"):
                yield _Need(SECRETS, secret.get("secretName") or secret.get("name") or "", volume=name)
            if config_map is not None and not config_map.get("optional"):
                yield _Need(CONFIG_MAPS, config_map.get("name") or "", volume=name)
    for container in containers_of(pod):
        yield from _needs_of_variables(container.name, container.spec)


def _needs_of_variables(container: str, spec: Json) -> Iterator[_Need]:
    for source in spec.get("envFrom") or ():
        for resource, field in ((CONFIG_MAPS, "configMapRef"), (SECRETS, "secretRef")):
            if (ref := source.get(field)) is not None and not ref.get("optional"):
                yield _Need(resource, ref.get("name") or "", container)
    for variable in spec.get("env") or ():
        source = variable.get("valueFrom") or {}
        for resource, field in ((CONFIG_MAPS, "configMapKeyRef"), (SECRETS, "secretKeyRef")):
            if (ref := source.get(field)) is not None and not ref.get("optional"):
                yield _Need(resource, ref.get("name") or "", container, key=ref.get("key") or "")
