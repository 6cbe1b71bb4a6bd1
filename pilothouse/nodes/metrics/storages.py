"""Resources of metrics.k8s.io. Every request queries the simulation, in whichever process it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import orjson

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.apiserver.endpoints.options import metadata_fields_only
from pilothouse.apiserver.endpoints.serializers.registry import TEXT
from pilothouse.apiserver.endpoints.unstructured import UnstructuredDecoder
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.registry.listing import predicate
from pilothouse.apiserver.registry.operations import ListResult, RequestContext, Result
from pilothouse.apiserver.registry.options import GetOptions, ListOptions
from pilothouse.apiserver.registry.resource import Names, metadata_fields
from pilothouse.apiserver.registry.table import NAME, Column
from pilothouse.apiserver.storage.interface import Entry
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.event_loop import yield_periodically
from pilothouse.machinery.names import GroupResource, GroupVersionKind
from pilothouse.machinery.objects import Json, drop_resource_version, name_of, namespace_of
from pilothouse.machinery.quantity import Quantity, parse_quantity
from pilothouse.machinery.server_errors import ServiceUnavailable
from pilothouse.nodes.metrics.usage import GROUP_VERSION, NODE_METRICS, POD_METRICS
from pilothouse.nodes.simulated_kubelet import HOST, SERVER_NAME, SimulatedKubelet

_MAX_ANSWER: Final = 64 * 1024 * 1024
_RESOURCES: Final = ("cpu", "memory")

Objects: TypeAlias = list[Json]


class MeasuredObjects:
    """`get` and `list` of one kind, from the simulated kubelets."""

    def __init__(self, kubelet: SimulatedKubelet, kind: GroupVersionKind, path: str) -> None:
        self._kubelet = kubelet
        self._kind, self._path = kind, path
        self._codec = ObjectCodec(kind.kind, kind.api_version, metadata_fields)

    async def get(self, ctx: RequestContext, name: str, options: GetOptions) -> Result:
        path = f"{self._path}/{ctx.namespace}/{name}" if ctx.namespace else self._path
        for obj in await self._ask(path):
            if name_of(obj) == name:
                return obj
        resource = GroupResource(self._kind.group, self._kind.kind.lower())
        raise NotFound.of(resource, f"{ctx.namespace}/{name}" if ctx.namespace else name)

    async def list(self, ctx: RequestContext, options: ListOptions) -> ListResult:
        path = f"{self._path}/{ctx.namespace}" if ctx.namespace else self._path
        measured = sorted(await self._ask(path), key=lambda obj: (namespace_of(obj), name_of(obj)))
        matches = predicate(options)
        objects = [
            StoredObject(Entry("", self._codec.encode(obj), 0, 0), self._codec)
            async for obj in yield_periodically(measured)
        ]
        return ListResult([obj for obj in objects if matches is None or matches(obj)], revision=0)

    async def _ask(self, path: str) -> Objects:
        """Query the simulation. Raises ServiceUnavailable if no simulation runs."""
        # Outbound HTTP is imported on first use.
        from pilothouse.apiserver.outbound.failures import BackendFailed
        from pilothouse.apiserver.outbound.request import OutboundRequest, ask

        if not (port := self._kubelet.port):
            raise ServiceUnavailable("the simulation does not run yet")
        target = Target(HOST, port, path, tls=self._kubelet.tls, server_name=SERVER_NAME)
        try:
            answer = await ask(OutboundRequest("GET", target), limit=_MAX_ANSWER)
        except BackendFailed as error:
            raise ServiceUnavailable(f"the simulation does not answer: {error}") from None
        objects: Objects = orjson.loads(answer.body)
        return objects


def metrics_group(kubelet: SimulatedKubelet) -> APIGroup:
    """Return metrics.k8s.io as metrics-server serves it."""
    nodes = _served("nodes", NODE_METRICS, kubelet, namespaced=False)
    pods = _served("pods", POD_METRICS, kubelet, namespaced=True)
    return APIGroup(GROUP_VERSION.group, [APIVersion(GROUP_VERSION, [nodes, pods])])


def _served(plural: str, kind: GroupVersionKind, kubelet: SimulatedKubelet, *, namespaced: bool) -> ServedResource:
    return ServedResource(
        names=Names(plural, kind.kind),
        namespaced=namespaced,
        storage=MeasuredObjects(kubelet, kind, f"/usage/{plural}"),
        kind=kind,
        decoder=UnstructuredDecoder(kind),
        from_stored=drop_resource_version,
        convert_field=metadata_fields_only,
        columns=[
            NAME,
            *(Column(name, _total(name), format="quantity") for name in _RESOURCES),
            Column("Window", lambda obj: obj.get("window") or "", format="duration"),
        ],
        serializers=TEXT,
    )


def _total(name: str) -> Callable[[Json], str]:
    def cell(obj: Json) -> str:
        parts = [obj] if "usage" in obj else obj.get("containers") or ()
        first, *others = [*(parse_quantity(part["usage"][name]) for part in parts)] or [Quantity(0)]
        return str(sum(others, first)) if others else str(first)

    return cell
