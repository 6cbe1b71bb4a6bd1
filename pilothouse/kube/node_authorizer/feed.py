"""Keeps the graph as the watch caches show pods, volumes, attachments and resource slices."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import ParamSpec

from pilothouse.apiserver.registry.informer import Drop, Put, RegistryFollower, start_following
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.apiserver.tallies import REGISTRY, HistogramTally
from pilothouse.kinds.pods import is_mirror_pod
from pilothouse.kube.certificates.pod_certificate_requests import POD_CERTIFICATE_REQUESTS
from pilothouse.kube.core.persistentvolumes.resource import PERSISTENT_VOLUMES
from pilothouse.kube.core.pods.resource import PODS
from pilothouse.kube.node_authorizer.graph import NodeGraph, ReferredObject, references_of_pod, secrets_of_volume
from pilothouse.kube.registries import Registries
from pilothouse.kube.resource.resource_slices import RESOURCE_SLICES
from pilothouse.kube.storage.volumeattachments import VOLUME_ATTACHMENTS
from pilothouse.machinery.objects import Json, name_of, namespace_of, part, text

P = ParamSpec("P")

GRAPH_ACTIONS = HistogramTally(
    "node_authorizer_graph_actions_duration_seconds",
    "Seconds that changes of the node authorizer's graph took.",
    ("operation",),
    bounds=tuple(0.0001 * 2**power for power in range(12)),
    registry=REGISTRY,
)


class NodeGraphFeed:
    def __init__(self, graph: NodeGraph, registries: Registries) -> None:
        self._graph = graph
        feeds: list[tuple[Resource, str, Put, Drop]] = [
            (PODS, "Pod", self._put_pod, self._drop("pods")),
            (PERSISTENT_VOLUMES, "PV", self._put_volume, self._drop_volume),
            (VOLUME_ATTACHMENTS, "VolumeAttachment", self._put("volumeattachments"), self._drop("volumeattachments")),
            (RESOURCE_SLICES, "ResourceSlice", self._put("resourceslices"), self._drop("resourceslices")),
        ]
        if registries.features.enabled("PodCertificateRequest"):
            resource = "podcertificaterequests"
            feeds.append((POD_CERTIFICATE_REQUESTS, "PodCertificateRequest", self._put(resource), self._drop(resource)))
        self._followers = [
            RegistryFollower(registries.open(resource), _timed(f"Add{name}", put), _timed(f"Delete{name}", drop))
            for resource, name, put, drop in feeds
        ]

    async def start(self, context: HookContext) -> None:
        """Fill the graph and keep it up to date."""
        await start_following(self._followers, context, who="node authorizer")

    def _put_pod(self, pod: Json) -> None:
        owner = ReferredObject("pods", namespace_of(pod), name_of(pod))
        self._graph.place(owner, text(pod, "spec", "nodeName"), () if is_mirror_pod(pod) else references_of_pod(pod))

    def _put_volume(self, volume: Json) -> None:
        claim = part(volume, "spec", "claimRef")
        if not claim:
            self._graph.drop_volume(name_of(volume))
            return
        claimed = ReferredObject("persistentvolumeclaims", text(claim, "namespace"), text(claim, "name"))
        self._graph.put_volume(name_of(volume), claimed, secrets_of_volume(volume))

    def _drop_volume(self, namespace: str, name: str) -> None:
        self._graph.drop_volume(name)

    def _put(self, resource: str) -> Put:
        def place(obj: Json) -> None:
            owner = ReferredObject(resource, namespace_of(obj), name_of(obj))
            self._graph.place(owner, text(obj, "spec", "nodeName"))

        return place

    def _drop(self, resource: str) -> Drop:
        return lambda namespace, name: self._graph.drop(ReferredObject(resource, namespace, name))


def _timed(operation: str, work: Callable[P, None]) -> Callable[P, None]:
    row = GRAPH_ACTIONS.row((operation,))

    def timed(*args: P.args, **named: P.kwargs) -> None:
        start = perf_counter()
        work(*args, **named)
        row.observe(perf_counter() - start)

    return timed
