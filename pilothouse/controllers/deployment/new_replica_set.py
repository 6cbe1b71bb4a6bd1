"""The replica set with a deployment's current template (lookup, update, creation), and API writes with events."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from pilothouse.client.clock import Clock, utc_now
from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.deployment import status
from pilothouse.controllers.deployment.replica_sets import (
    REVISION,
    ReplicaSets,
    annotations_of_new_set,
    max_revision,
    new_set_size,
    same_template,
    size,
    size_annotations,
)
from pilothouse.controllers.namespace_state import is_refusal_of_terminating_namespace
from pilothouse.controllers.resources import DEPLOYMENTS, REPLICA_SETS
from pilothouse.controllers.workloads.pod_control import POD_TEMPLATE_HASH, template_hash
from pilothouse.kinds.conditions import find_in
from pilothouse.kinds.owners import controller_ref, is_controlled_by
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.objects import (
    Json,
    annotations_of,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    part,
    resource_version_of,
)
from pilothouse.machinery.status_error import StatusError

_MAX_NAME = 253
_SCALING = "ScalingReplicaSet"


async def bring_up_to_date(actions: Actions, deployment: Json, sets: ReplicaSets) -> None:
    """Update revision and annotations of the new replica set, if any, and copy its revision to the deployment.

    A previously old replica set gets the highest revision: reusing a template is a rollback. Raises StatusError.
    """
    if sets.new is None:
        return
    sets.new = await _annotated(actions, deployment, sets.new, max_revision(sets.old) + 1)
    must_write = _set_revision(deployment, annotations_of(sets.new).get(REVISION, ""))
    if find_in(deployment["status"], status.PROGRESSING) is None:
        must_write |= _set_progress(
            actions, deployment, status.FOUND_NEW_REPLICA_SET, f'Found new replica set "{name_of(sets.new)}"'
        )
    if must_write:
        await actions.write_status(deployment)


async def _annotated(actions: Actions, deployment: Json, replica_set: Json, revision: int) -> Json:
    annotations = annotations_of_new_set(deployment, replica_set, revision)
    spec, seconds = replica_set["spec"], deployment["spec"].get("minReadySeconds") or 0
    if annotations == annotations_of(replica_set) and (spec.get("minReadySeconds") or 0) == seconds:
        return replica_set
    meta = {**metadata(replica_set), "annotations": annotations}
    changed = {**replica_set, "metadata": meta, "spec": {**spec, "minReadySeconds": seconds}}
    return await actions.replica_sets(deployment).update(changed)


async def create_new_replica_set(actions: Actions, deployment: Json, sets: ReplicaSets) -> None:
    """Create the new replica set. Raises StatusError.

    The name is derived from the template, so a retry finds the created replica set. If the existing replica set has
    another template or owner, collisionCount is incremented, which changes the next name.
    """
    revision = max_revision(sets.old) + 1
    wanted = new_replica_set(deployment, sets, revision)
    try:
        sets.new = await actions.replica_sets(deployment).create(wanted)
    except AlreadyExists as collision:
        sets.new = await _found_instead(actions, deployment, name_of(wanted), collision)
        must_write = _set_revision(deployment, str(revision))
    except StatusError as error:
        if not is_refusal_of_terminating_namespace(error):
            await _tell_failure(actions, deployment, name_of(wanted), error)
        raise
    else:
        name = name_of(sets.new)
        if size(wanted) > 0:
            actions.tell_scaled(deployment, name, 0, size(wanted))
        must_write = _set_revision(deployment, str(revision))
        must_write |= _set_progress(
            actions, deployment, status.NEW_REPLICA_SET_CREATED, f'Created new replica set "{name}"'
        )
    if must_write:
        await actions.write_status(deployment)


def new_replica_set(deployment: Json, sets: ReplicaSets, revision: int) -> Json:
    template, spec = deployment["spec"]["template"], deployment["spec"]
    label = {POD_TEMPLATE_HASH: template_hash(template, part(deployment, "status").get("collisionCount"))}
    labels, selector = labels_of(template) | label, spec["selector"]
    replica_set: Json = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": replica_set_name(name_of(deployment), label[POD_TEMPLATE_HASH]),
            "namespace": namespace_of(deployment),
            "ownerReferences": [controller_ref(deployment)],
            "labels": labels,
        },
        "spec": {
            "replicas": new_set_size(deployment, sets.old, 0),
            "selector": {**selector, "matchLabels": (selector.get("matchLabels") or {}) | label},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }
    if seconds := spec.get("minReadySeconds"):
        replica_set["spec"]["minReadySeconds"] = seconds
    replica_set["metadata"]["annotations"] = annotations_of_new_set(
        deployment, replica_set, revision
    ) | size_annotations(deployment)
    return replica_set


def replica_set_name(deployment: str, template: str) -> str:
    """Join both names; the deployment's name is truncated to fit."""
    return f"{deployment[: _MAX_NAME - 1 - len(template)]}-{template}"


async def _found_instead(actions: Actions, deployment: Json, name: str, collision: AlreadyExists) -> Json:
    existing = await actions.replica_sets(deployment).get(name)
    is_same = same_template(existing["spec"]["template"], deployment["spec"]["template"])
    if is_same and is_controlled_by(existing, deployment):
        return existing
    deployment["status"]["collisionCount"] = (deployment["status"].get("collisionCount") or 0) + 1
    await actions.write_status(deployment)
    raise collision


async def _tell_failure(actions: Actions, deployment: Json, name: str, error: StatusError) -> None:
    message = f'Failed to create new replica set "{name}": {error}'
    if status.progress_deadline(deployment) is not None:
        condition = status.new_condition(
            status.PROGRESSING, "False", status.REPLICA_SET_CREATE_ERROR, message, actions.now
        )
        status.set_condition(deployment["status"], condition)
        with suppress(StatusError):  # report the creation failure, not the status write failure
            await actions.write_status(deployment)
    actions.warn(deployment, status.REPLICA_SET_CREATE_ERROR, message)


def _set_revision(deployment: Json, revision: str) -> bool:
    """Set the revision annotation; return whether it changed."""
    annotations = metadata(deployment)["annotations"]
    is_new: bool = annotations.get(REVISION, "") != revision
    annotations[REVISION] = revision
    return is_new


def _set_progress(actions: Actions, deployment: Json, reason: str, message: str) -> bool:
    """Set the Progressing condition; return False if the deployment has no progress deadline."""
    if status.progress_deadline(deployment) is None:
        return False
    status.set_condition(
        deployment["status"], status.new_condition(status.PROGRESSING, "True", reason, message, actions.now)
    )
    return True


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
        message = f"Scaled {direction} replica set {name} from {before} to {after}"
        self._recorder.event(deployment, NORMAL, _SCALING, message)

    def tell(self, deployment: Json, reason: str, message: str) -> None:
        self._recorder.event(deployment, NORMAL, reason, message)

    def warn(self, deployment: Json, reason: str, message: str) -> None:
        self._recorder.event(deployment, WARNING, reason, message)
