"""Keeps the graph as the watch caches show pods, volumes, attachments and resource slices."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.registry.follower import Drop, Put, RegistryFollower
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.core.persistentvolumes.resource import PERSISTENT_VOLUMES
from pilothouse.kube.core.pods.resource import PODS
from pilothouse.kube.node_authorizer.graph import NodeGraph
from pilothouse.kube.node_authorizer.references import Reference, is_mirror, references_of_pod, secrets_of_volume
from pilothouse.kube.parts import part, text
from pilothouse.kube.resource.resource_slices import RESOURCE_SLICES
from pilothouse.kube.served import Registries
from pilothouse.kube.storage.volumeattachments import VOLUME_ATTACHMENTS
from pilothouse.machinery.objects import Json, name_of, namespace_of


class NodeGraphFeed:
    def __init__(self, graph: NodeGraph, registries: Registries) -> None:
        self._graph = graph
        self._followers = [
            RegistryFollower(registries.open(PODS), self._put_pod, self._drop("pods")),
            RegistryFollower(registries.open(PERSISTENT_VOLUMES), self._put_volume, self._drop_volume),
            RegistryFollower(
                registries.open(VOLUME_ATTACHMENTS), self._put("volumeattachments"), self._drop("volumeattachments")
            ),
            RegistryFollower(
                registries.open(RESOURCE_SLICES), self._put("resourceslices"), self._drop("resourceslices")
            ),
        ]

    async def start(self, context: HookContext) -> None:
        """Returns when the graph is what is stored; it is kept so from then on."""
        await asyncio.gather(*(follower.fill() for follower in self._followers))
        for follower in self._followers:
            context.spawn(follower.follow(), name=f"node authorizer of {follower.registry.resource.names.plural}")

    def _put_pod(self, pod: Json) -> None:
        owner = Reference("pods", namespace_of(pod), name_of(pod))
        self._graph.place(owner, text(pod, "spec", "nodeName"), () if is_mirror(pod) else references_of_pod(pod))

    def _put_volume(self, volume: Json) -> None:
        claim = part(volume, "spec", "claimRef")
        if not claim:
            self._graph.drop_volume(name_of(volume))
            return
        claimed = Reference("persistentvolumeclaims", text(claim, "namespace"), text(claim, "name"))
        self._graph.put_volume(name_of(volume), claimed, secrets_of_volume(volume))

    def _drop_volume(self, namespace: str, name: str) -> None:
        self._graph.drop_volume(name)

    def _put(self, resource: str) -> Put:
        return lambda obj: self._graph.place(Reference(resource, "", name_of(obj)), text(obj, "spec", "nodeName"))

    def _drop(self, resource: str) -> Drop:
        return lambda namespace, name: self._graph.drop(Reference(resource, namespace, name))
