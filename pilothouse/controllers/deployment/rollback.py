"""Rollbacks requested by the extensions/v1beta1 annotation; kubectl writes the old template itself."""

from __future__ import annotations

from pilothouse.controllers.deployment import new_replica_set
from pilothouse.controllers.deployment.actions import Actions
from pilothouse.controllers.deployment.replica_sets import ReplicaSets, same_template
from pilothouse.controllers.deployment.revisions import (
    NOT_COPIED,
    ROLLBACK_TO,
    copied_annotations,
    last_revision,
    revision_of,
)
from pilothouse.controllers.workloads.template_hash import POD_TEMPLATE_HASH
from pilothouse.machinery.integers import parse_int64
from pilothouse.machinery.objects import Json, annotations_of, labels_of, metadata, name_of

_DONE = "DeploymentRollback"
_NOT_FOUND = "DeploymentRollbackRevisionNotFound"
_UNCHANGED = "DeploymentRollbackTemplateUnchanged"


def rollback_revision(deployment: Json) -> int | None:
    """Return the requested rollback revision, 0 for the previous one; None without a request."""
    try:
        return parse_int64(annotations_of(deployment).get(ROLLBACK_TO) or "")
    except ValueError:
        return None


async def roll_back(actions: Actions, deployment: Json, sets: ReplicaSets, revision: int) -> None:
    """Restore the template and annotations of that revision. Raises StatusError."""
    if sets.new is None:
        await new_replica_set.create(actions, deployment, sets)
    wanted = revision or last_revision(sets.all)
    replica_set = next((each for each in sets.all if wanted and revision_of(each) == wanted), None)
    if replica_set is None:
        told = "Unable to find the revision to rollback to." if wanted else "Unable to find last revision."
        actions.warn(deployment, _NOT_FOUND, told)
        await _write(actions, deployment)
    elif same_template(deployment["spec"]["template"], replica_set["spec"]["template"]):
        name = name_of(deployment)
        told = f'The rollback revision contains the same template as current deployment "{name}"'
        actions.warn(deployment, _UNCHANGED, told)
        await _write(actions, deployment)
    else:
        await _write(actions, rolled_back(deployment, replica_set))
        told = f'Rolled back deployment "{name_of(deployment)}" to revision {wanted}'
        actions.tell(deployment, _DONE, told)


def rolled_back(deployment: Json, replica_set: Json) -> Json:
    own = {key: value for key, value in annotations_of(deployment).items() if key in NOT_COPIED}
    template = replica_set["spec"]["template"]
    labels = {key: value for key, value in labels_of(template).items() if key != POD_TEMPLATE_HASH}
    meta = {**metadata(deployment), "annotations": own | copied_annotations(replica_set)}
    before = {**template, "metadata": {**template["metadata"], "labels": labels}}
    return {**deployment, "metadata": meta, "spec": {**deployment["spec"], "template": before}}


async def _write(actions: Actions, deployment: Json) -> None:
    metadata(deployment)["annotations"].pop(ROLLBACK_TO, None)
    await actions.write(deployment)
