"""The replica set with the deployment's current template: lookup, update and creation."""

from __future__ import annotations

from contextlib import suppress

from pilothouse.controllers.deployment.actions import Actions
from pilothouse.controllers.deployment.conditions import (
    FOUND_NEW_REPLICA_SET,
    NEW_REPLICA_SET_CREATED,
    PROGRESSING,
    REPLICA_SET_CREATE_ERROR,
    new_condition,
    set_condition,
)
from pilothouse.controllers.deployment.fenceposts import new_set_size
from pilothouse.controllers.deployment.replica_sets import ReplicaSets, same_template, size
from pilothouse.controllers.deployment.revisions import (
    REVISION,
    annotations_of_new_set,
    max_revision,
    size_annotations,
)
from pilothouse.controllers.deployment.status import progress_deadline
from pilothouse.controllers.namespace_state import is_refusal_of_terminating_namespace
from pilothouse.controllers.workloads.template_hash import POD_TEMPLATE_HASH, template_hash
from pilothouse.kinds.conditions import find_in
from pilothouse.kinds.owners import controller_ref, is_controlled_by
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, annotations_of, labels_of, metadata, name_of, namespace_of, part
from pilothouse.machinery.status_error import StatusError

_MAX_NAME = 253


async def bring_up_to_date(actions: Actions, deployment: Json, sets: ReplicaSets) -> None:
    """Update revision and annotations of the new replica set, if any, and copy its revision to the deployment.

    A previously old replica set gets the highest revision: reusing a template is a rollback. Raises StatusError.
    """
    if sets.new is None:
        return
    sets.new = await _annotated(actions, deployment, sets.new, max_revision(sets.old) + 1)
    must_write = _set_revision(deployment, annotations_of(sets.new).get(REVISION, ""))
    if find_in(deployment["status"], PROGRESSING) is None:
        must_write |= _set_progress(
            actions, deployment, FOUND_NEW_REPLICA_SET, f'Found new replica set "{name_of(sets.new)}"'
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


async def create(actions: Actions, deployment: Json, sets: ReplicaSets) -> None:
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
        must_write |= _set_progress(actions, deployment, NEW_REPLICA_SET_CREATED, f'Created new replica set "{name}"')
    if must_write:
        await actions.write_status(deployment)


def new_replica_set(deployment: Json, sets: ReplicaSets, revision: int) -> Json:
    template, spec = deployment["spec"]["template"], deployment["spec"]
    label = {POD_TEMPLATE_HASH: template_hash(template, part(deployment, "status").get("collisionCount"))}
    labels, selector = labels_of(template) | label, spec["selector"]
    made: Json = {
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
        made["spec"]["minReadySeconds"] = seconds
    made["metadata"]["annotations"] = annotations_of_new_set(deployment, made, revision) | size_annotations(deployment)
    return made


def replica_set_name(deployment: str, template: str) -> str:
    """Join both names; the deployment's name is truncated to fit."""
    return f"{deployment[: _MAX_NAME - 1 - len(template)]}-{template}"


async def _found_instead(actions: Actions, deployment: Json, name: str, collision: AlreadyExists) -> Json:
    found = await actions.replica_sets(deployment).get(name)
    is_same = same_template(found["spec"]["template"], deployment["spec"]["template"])
    if is_same and is_controlled_by(found, deployment):
        return found
    deployment["status"]["collisionCount"] = (deployment["status"].get("collisionCount") or 0) + 1
    await actions.write_status(deployment)
    raise collision


async def _tell_failure(actions: Actions, deployment: Json, name: str, error: StatusError) -> None:
    told = f'Failed to create new replica set "{name}": {error}'
    if progress_deadline(deployment) is not None:
        condition = new_condition(PROGRESSING, "False", REPLICA_SET_CREATE_ERROR, told, actions.now)
        set_condition(deployment["status"], condition)
        with suppress(StatusError):  # report the creation failure, not the status write failure
            await actions.write_status(deployment)
    actions.warn(deployment, REPLICA_SET_CREATE_ERROR, told)


def _set_revision(deployment: Json, revision: str) -> bool:
    """Set the revision annotation; return whether it changed."""
    annotations = metadata(deployment)["annotations"]
    is_new: bool = annotations.get(REVISION, "") != revision
    annotations[REVISION] = revision
    return is_new


def _set_progress(actions: Actions, deployment: Json, reason: str, message: str) -> bool:
    """Set the Progressing condition; return False if the deployment has no progress deadline."""
    if progress_deadline(deployment) is None:
        return False
    set_condition(deployment["status"], new_condition(PROGRESSING, "True", reason, message, actions.now))
    return True
