"""API requests of the collector, with preconditions.

Deletions require the uid and resourceVersion of the decision. If the object has changed but its owners have not, the
deletion is retried: frequent updates must not keep it alive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from pilothouse.client.discovery import ServerResources
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import DeleteOptions, PatchType
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.garbagecollector.graph import GraphNode, ObjectReference, ObjectState
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Conflict, NotFound, UnsupportedMediaType
from pilothouse.machinery.names import GroupResource, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json, uid_of
from pilothouse.machinery.status_error import PilothouseError

_ATTEMPTS = 5
IGNORED = frozenset({GroupResource("", "events"), GroupResource("events.k8s.io", "events")})
"""Ignored resources: frequent, and without ownership."""
_VERBS = ("delete", "list", "watch")


class NamespacedOwnerOfClusterScopedObject(PilothouseError):
    """A cluster-scoped object references a namespaced owner; only its author can fix this."""

    def __init__(self) -> None:
        super().__init__("cluster-scoped objects cannot refer to namespaced owners")


class Operations:
    def __init__(self, client: Client, mappings: KindMappings) -> None:
        self._client = client
        self._mappings = mappings

    def mapping(self, api_version: str, kind: str) -> KindMapping:
        """Return the mapping of a kind. Raises NoMapping."""
        return self._mappings.find(api_version, kind)

    async def get(self, item: ObjectReference) -> Json:
        """Read the object. Raises NotFound, also on a uid mismatch; NoMapping; NamespacedOwnerOfClusterScopedObject."""
        mapping = self.mapping(item.api_version, item.kind)
        if mapping.namespaced and not item.namespace:
            raise NamespacedOwnerOfClusterScopedObject
        live = await self._objects(mapping, item).get(item.name)
        if uid_of(live) != item.uid:
            raise NotFound.of(mapping.resource.group_resource, item.name)
        return live

    async def delete(self, item: ObjectReference, at: ObjectState, policy: str) -> None:
        """Delete the object. Raises NotFound, or Conflict if the owners differ from the state."""
        objects = self._objects(self.mapping(item.api_version, item.kind), item)
        options = DeleteOptions(uid=item.uid, resource_version=at.resource_version, propagation_policy=policy)
        try:
            await objects.delete(item.name, options)
        except Conflict:
            live = ObjectState.of(await self.get(item))
            if live.resource_version == at.resource_version or live.owners != at.owners:
                raise
            await objects.delete(item.name, DeleteOptions(uid=item.uid, propagation_policy=policy))

    async def remove_owners(self, item: ObjectReference, uids: Iterable[str]) -> None:
        """Remove owner references by uid; missing ones are ignored."""
        gone = set(uids)
        directives = [{"$patch": "delete", "uid": uid} for uid in sorted(gone)]
        try:
            await self._patch(item, {"ownerReferences": directives, "uid": item.uid}, PatchType.STRATEGIC)
        except UnsupportedMediaType:
            live = await self.get(item)
            kept = [
                reference for reference in live["metadata"].get("ownerReferences") or () if reference["uid"] not in gone
            ]
            await self._merge(item, live, {"ownerReferences": kept})

    async def unblock_owners(self, item: GraphNode) -> None:
        """Clear blockOwnerDeletion on all owner references of the object."""
        blocking = [owner.to_json() for owner in item.owners if owner.block_owner_deletion]
        released = [{**reference, "blockOwnerDeletion": False} for reference in blocking]
        metadata = {"ownerReferences": released, "uid": item.identity.uid}
        try:
            await self._patch(item.identity, metadata, PatchType.STRATEGIC)
        except UnsupportedMediaType:
            live = await self.get(item.identity)
            owners = [
                {**reference, "blockOwnerDeletion": False}
                for reference in live["metadata"].get("ownerReferences") or ()
            ]
            await self._merge(item.identity, live, {"ownerReferences": owners})

    async def remove_finalizer(self, item: GraphNode, finalizer: str) -> None:
        """Remove a finalizer; a missing object or finalizer is ignored. Raises Conflict on repeated concurrent
        writes."""
        state = item.state
        for attempt in range(_ATTEMPTS):
            if attempt or not item.is_observed:
                try:
                    state = ObjectState.of(await self.get(item.identity))
                except NotFound:
                    return
            if finalizer not in state.finalizers:
                return
            kept = [entry for entry in state.finalizers if entry != finalizer]
            metadata = {"resourceVersion": state.resource_version, "finalizers": kept}
            try:
                await self._patch(item.identity, metadata, PatchType.MERGE)
                return
            except NotFound:
                return
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise

    async def _merge(self, item: ObjectReference, live: Json, change: Json) -> None:
        await self._patch(item, {"resourceVersion": live["metadata"]["resourceVersion"], **change}, PatchType.MERGE)

    async def _patch(self, item: ObjectReference, metadata: Json, type_: PatchType) -> None:
        objects = self._objects(self.mapping(item.api_version, item.kind), item)
        await objects.patch(item.name, {"metadata": metadata}, type_)

    def _objects(self, mapping: KindMapping, item: ObjectReference) -> ResourceClient:
        namespace = mapping.namespace(item.namespace)
        return self._client.for_resource(mapping.resource, namespace=namespace).metadata_only()


class NoMapping(PilothouseError):
    """The kind is not served: not yet, no longer, or never."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f"unable to get REST mapping for {api_version}/{kind}.")


@dataclass(frozen=True, slots=True)
class KindMapping:
    resource: GroupVersionResource
    namespaced: bool

    def namespace(self, namespace: str) -> str:
        return namespace if self.namespaced else ""


@dataclass(slots=True)
class KindMappings:
    """Mapping from kind to resource, as of the last discovery."""

    _found: dict[tuple[str, str], KindMapping] = field(default_factory=dict)

    def replace(self, discovered: ServerResources) -> None:
        """Replace the mappings; kinds of groups that failed discovery are kept."""
        kept = {key: value for key, value in self._found.items() if value.resource.group_version in discovered.failed}
        self._found = kept
        for resource in discovered.resources:
            if not resource.is_subresource:
                key = (str(resource.resource.group_version), resource.kind.kind)
                self._found.setdefault(key, KindMapping(resource.resource, resource.namespaced))

    def find(self, api_version: str, kind: str) -> KindMapping:
        """Return the mapping. Raises NoMapping."""
        mapping = self._found.get((api_version, kind))
        if mapping is None:
            raise NoMapping(api_version, kind)
        return mapping


def deletable(discovered: ServerResources) -> dict[GroupVersionResource, GroupVersionKind]:
    """Return the collectable resources in preferred versions, with their kinds."""
    kinds = {}
    for resource in discovered.preferred():
        gvr = resource.resource
        if (
            resource.is_subresource
            or gvr.group_resource in IGNORED
            or not all(verb in resource.verbs for verb in _VERBS)
        ):
            continue
        # Owner references name the kind in the served version.
        kinds[gvr] = GroupVersionKind(gvr.group, gvr.version, resource.kind.kind)
    return kinds
