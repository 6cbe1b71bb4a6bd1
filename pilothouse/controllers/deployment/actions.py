"""API writes of deployment-controller, with their events."""

from __future__ import annotations

from datetime import datetime

from pilothouse.client.clock import Clock, utc_now
from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.deployment.replica_sets import size
from pilothouse.controllers.deployment.revisions import size_annotations
from pilothouse.controllers.resources import DEPLOYMENTS, REPLICA_SETS
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, annotations_of, metadata, name_of, namespace_of, resource_version_of

_SCALING = "ScalingReplicaSet"


@dataclass(frozen=True, slots=True)
class Scaled:
    replica_set: Json
    is_resized: bool


def working_copy(deployment: Json) -> Json:
    """Return a copy with mutable annotations and status; nested values stay shared with the original."""
    meta = {**metadata(deployment), "annotations": {**annotations_of(deployment)}}
    return {**deployment, "metadata": meta, "status": {**(deployment.get("status") or {})}}


class Actions:
    """API writes for deployments.

    Every deployment passed in is a working copy. A write updates its resourceVersion, so one sync can write several
    times.
    """

    def __init__(self, client: Client, recorder: EventRecorder, clock: Clock) -> None:
        self._deployments = client.for_resource(DEPLOYMENTS)
        self._replica_sets = client.for_resource(REPLICA_SETS)
        self._recorder = recorder
        self._clock = clock

    @property
    def now(self) -> datetime:
        return utc_now(self._clock)

    def replica_sets(self, deployment: Json) -> ResourceClient:
        return self._replica_sets.namespace(namespace_of(deployment))

    async def read(self, deployment: Json) -> Json:
        """Read the deployment from the API server, bypassing the cache. Raises StatusError."""
        return await self._deployments.namespace(namespace_of(deployment)).get(name_of(deployment))

    async def write_status(self, deployment: Json) -> None:
        """Write the status and the annotations. Raises StatusError."""
        written = await self._deployments.namespace(namespace_of(deployment)).update_status(deployment)
        metadata(deployment)["resourceVersion"] = resource_version_of(written)

    async def write(self, deployment: Json) -> None:
        """Write the deployment. Raises StatusError."""
        written = await self._deployments.namespace(namespace_of(deployment)).update(deployment)
        metadata(deployment)["resourceVersion"] = resource_version_of(written)

    async def scale(self, deployment: Json, replica_set: Json, to: int, *, always: bool = False) -> Scaled:
        """Scale the replica set and record the deployment's size in its annotations. Raises StatusError.

        If the replica set already has size `to`, nothing is written; with `always`, the annotations are still updated.
        """
        before = size(replica_set)
        annotations = annotations_of(replica_set) | size_annotations(deployment)
        if before == to and (not always or annotations == annotations_of(replica_set)):
            return Scaled(replica_set, is_resized=False)
        meta = {**metadata(replica_set), "annotations": annotations}
        changed = {**replica_set, "metadata": meta, "spec": {**replica_set["spec"], "replicas": to}}
        written = await self.replica_sets(deployment).update(changed)
        if before != to:
            self.tell_scaled(deployment, name_of(written), before, to)
        return Scaled(written, is_resized=before != to)

    async def delete(self, deployment: Json, replica_set: Json) -> None:
        """Delete the replica set; a missing replica set is ignored. Raises StatusError."""
        try:
            await self.replica_sets(deployment).delete(name_of(replica_set))
        except NotFound:
            return

    def tell_scaled(self, deployment: Json, name: str, before: int, after: int) -> None:
        direction = "up" if before < after else "down"
        told = f"Scaled {direction} replica set {name} from {before} to {after}"
        self._recorder.event(deployment, NORMAL, _SCALING, told)

    def tell(self, deployment: Json, reason: str, message: str) -> None:
        self._recorder.event(deployment, NORMAL, reason, message)

    def warn(self, deployment: Json, reason: str, message: str) -> None:
        self._recorder.event(deployment, WARNING, reason, message)
