"""Expected number of pods: the total of the controllers' scales, each counted once.

Scales are read from the server in-process, so that no workload informers are needed.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest_mapper import NoMatch, RESTMapper
from pilothouse.controllers.resources import DEPLOYMENTS, REPLICA_SETS
from pilothouse.kinds.owners import controller_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupKind, GroupVersion, GroupVersionResource
from pilothouse.machinery.objects import Json, name_of, namespace_of, number, uid_of
from pilothouse.machinery.status_error import PilothouseError

_APPS = ("apps", "extensions")


class ScaleUnknown(PilothouseError):
    """The scale of a pod's controller cannot be determined."""


@dataclass(frozen=True, slots=True)
class ControllerScale:
    uid: str
    replicas: int


@dataclass(frozen=True, slots=True)
class ExpectedScale:
    replicas: int
    unmanaged: tuple[str, ...]
    """Names of pods without a controller."""


class Scales:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._discovery = DiscoveryClient(client)
        self._mapper = RESTMapper(self._discovery)

    async def expected(self, pods: Iterable[Json]) -> ExpectedScale:
        """Return the expected scale of the pods' controllers. Raises ScaleUnknown or StatusError."""
        unmanaged: list[str] = []
        by_reference: dict[str, ControllerScale] = {}
        for pod in pods:
            reference = controller_of(pod)
            if reference is None:
                unmanaged.append(name_of(pod))
            elif reference["uid"] not in by_reference:
                namespace = namespace_of(pod)
                found = await self._of_replica_set(namespace, reference) if _is(reference, "ReplicaSet") else None
                found = found or await self._of_scale(namespace, reference)
                if found is None:
                    raise ScaleUnknown(f'found no controllers for pod "{name_of(pod)}"')
                by_reference[reference["uid"]] = found
        by_uid = {scale.uid: scale.replicas for scale in by_reference.values()}
        return ExpectedScale(sum(by_uid.values()), tuple(unmanaged))

    async def _of_replica_set(self, namespace: str, reference: Json) -> ControllerScale | None:
        """Return the scale of the ReplicaSet, or of the Deployment that controls it."""
        replica_set = await self._get(REPLICA_SETS, namespace, reference)
        if replica_set is None:
            return None
        owner = controller_of(replica_set)
        if owner is None or owner.get("kind") != "Deployment":
            return _scale(replica_set)
        deployment = await self._get(DEPLOYMENTS, namespace, owner) if _is(owner, "Deployment") else None
        return None if deployment is None else _scale(deployment)

    async def _of_scale(self, namespace: str, reference: Json) -> ControllerScale | None:
        gv = GroupVersion.parse(reference["apiVersion"])
        try:
            mapping = await self._mapper.mapping(GroupKind(gv.group, reference["kind"]), gv.version)
        except NoMatch:
            where = f'no matches for kind "{reference["kind"]}" in version "{gv}"'
            raise ScaleUnknown(where) from None
        scale = await self._get(mapping.resource, namespace, reference, subresource="scale")
        if scale is None and not await self._implements_scale(mapping.resource):
            raise ScaleUnknown(f"{mapping.resource.group_resource} does not implement the scale subresource")
        return None if scale is None else _scale(scale)

    async def _implements_scale(self, resource: GroupVersionResource) -> bool:
        wanted = resource.group_version.resource(f"{resource.resource}/scale")
        resources = (await self._discovery.server_resources()).resources
        return any(resource.resource == wanted and resource.kind.kind == "Scale" for resource in resources)

    async def _get(
        self, resource: GroupVersionResource, namespace: str, reference: Json, *, subresource: str = ""
    ) -> Json | None:
        objects = self._client.for_resource(resource, namespace=namespace)
        try:
            scale = await objects.get(reference["name"], subresource=subresource)
        except NotFound:
            return None
        return scale if uid_of(scale) == reference["uid"] else None


def _scale(obj: Json) -> ControllerScale:
    return ControllerScale(uid_of(obj), number(obj, "spec", "replicas"))


def _is(reference: Json, kind: str) -> bool:
    return reference.get("kind") == kind and GroupVersion.parse(reference["apiVersion"]).group in _APPS
