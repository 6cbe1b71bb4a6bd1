"""Changes of replica sets: the strategies RollingUpdate and Recreate, scaling, rollback, and cleanup.

A resized or paused deployment is scaled in proportion, without a rollout. Old replica sets beyond revisionHistoryLimit
are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pilothouse.controllers.deployment.new_replica_set import Actions, create_new_replica_set
from pilothouse.controllers.deployment.replica_sets import (
    NOT_COPIED,
    ROLLBACK_TO,
    ROLLING_UPDATE,
    ReplicaSets,
    active,
    active_or_latest,
    age,
    available,
    by_revision,
    copied_annotations,
    desired_replicas,
    largest_first,
    last_revision,
    max_replicas,
    max_scaled_down,
    max_size,
    min_available,
    new_set_size,
    revision_of,
    same_template,
    size,
    strategy_of,
    total,
    total_size,
)
from pilothouse.controllers.deployment.status import is_complete
from pilothouse.controllers.workloads.pod_control import POD_TEMPLATE_HASH
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import has_ended
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import parse_int64
from pilothouse.machinery.objects import Json, annotations_of, labels_of, metadata, name_of, part, uid_of
from pilothouse.machinery.status_error import StatusError

_DONE = "DeploymentRollback"
_NOT_FOUND = "DeploymentRollbackRevisionNotFound"
_UNCHANGED = "DeploymentRollbackTemplateUnchanged"
_NO_LIMIT = 2**31 - 1


async def roll(actions: Actions, deployment: Json, sets: ReplicaSets) -> None:
    """Take one step of a rolling update: scale up the new replica set, else scale down old ones. Raises StatusError."""
    if sets.new is None:
        await create_new_replica_set(actions, deployment, sets)
    assert sets.new is not None
    new = sets.new
    wanted = size(deployment)
    if size(new) < wanted:
        wanted = new_set_size(deployment, sets.all, size(new))
    if (await actions.scale(deployment, new, wanted)).is_resized:
        return
    if await _shrink_old(actions, deployment, sets, sets.new):
        return
    if is_complete(deployment, deployment["status"]):
        await clean_up(actions, deployment, sets.old)


async def recreate(
    actions: Actions, deployment: Json, sets: ReplicaSets, pods_of: Callable[[Json], Sequence[Json]]
) -> None:
    """Take one step of a Recreate rollout, in which old and new pods never coexist. Raises StatusError."""
    shrunk = [await actions.scale(deployment, replica_set, 0) for replica_set in sets.active_old]
    if any(resize.is_resized for resize in shrunk) or has_old_pods(sets, pods_of):
        return
    if sets.new is None:
        await create_new_replica_set(actions, deployment, sets)
    assert sets.new is not None
    await actions.scale(deployment, sets.new, size(deployment))
    if is_complete(deployment, deployment["status"]):
        await clean_up(actions, deployment, sets.old)


def has_old_pods(sets: ReplicaSets, pods_of: Callable[[Json], Sequence[Json]]) -> bool:
    """Return whether an old replica set has pods that have not ended. Terminating pods still run."""
    if total(sets.old, "replicas") > 0:
        return True
    return any(not has_ended(pod) for replica_set in sets.old for pod in pods_of(replica_set))


async def _shrink_old(actions: Actions, deployment: Json, sets: ReplicaSets, new: Json) -> bool:
    """Scale down old replica sets; return whether any size changed. Errors of single replica sets are left to the next
    sync."""
    room = max_scaled_down(deployment, new, sets.old)
    if total_size(sets.old) == 0 or room <= 0:
        return False
    by_uid = {uid_of(replica_set): replica_set for replica_set in sorted(sets.active_old, key=age)}
    if any(_missing(replica_set) < 0 for replica_set in by_uid.values()):
        return False  # the previous scale-down is in progress: terminating pods still count as available
    try:
        taken = await _shrink(actions, deployment, by_uid, _missing, room)
        spare = sum(map(available, (*by_uid.values(), new))) - min_available(deployment)
        taken += await _shrink(actions, deployment, by_uid, size, spare)
    except StatusError:
        return False
    return taken > 0


def _missing(replica_set: Json) -> int:
    """Return the number of unavailable pods, which are removed first."""
    return size(replica_set) - available(replica_set)


async def _shrink(
    actions: Actions, deployment: Json, by_uid: dict[str, Json], dispensable: Callable[[Json], int], at_most: int
) -> int:
    """Scale down oldest sets first, each by at most its dispensable pods; return the number of pods removed."""
    left = max(0, at_most)
    for uid, replica_set in by_uid.items():
        taken = max(0, min(left, dispensable(replica_set), size(replica_set)))
        if taken:
            scaled = await actions.scale(deployment, replica_set, size(replica_set) - taken)
            by_uid[uid] = scaled.replica_set
            left -= taken
    return max(0, at_most) - left


def is_resized(deployment: Json, sets: ReplicaSets) -> bool:
    """Return whether an active replica set was last scaled for another deployment size."""
    known = (desired_replicas(replica_set) for replica_set in active(sets.all))
    return any(desired is not None and desired != size(deployment) for desired in known)


async def scale(actions: Actions, deployment: Json, sets: ReplicaSets) -> None:
    """Scale the replica sets to the deployment's size. Raises StatusError."""
    only = active_or_latest(sets)
    if only is not None:
        await actions.scale(deployment, only, size(deployment))
    elif is_saturated(deployment, sets.new):
        for old in sets.active_old:
            await actions.scale(deployment, old, 0)
    elif strategy_of(deployment) == ROLLING_UPDATE:
        for resize in proportional_sizes(deployment, active(sets.all)):
            await actions.scale(deployment, resize.replica_set, resize.size, always=True)


@dataclass(frozen=True, slots=True)
class Resize:
    replica_set: Json
    size: int


def is_saturated(deployment: Json, replica_set: Json | None) -> bool:
    """Return whether the replica set has the deployment's full size, all available, and was sized for that size."""
    if replica_set is None:
        return False
    wanted = size(deployment)
    return size(replica_set) == wanted == available(replica_set) and desired_replicas(replica_set) == wanted


def proportional_sizes(deployment: Json, replica_sets: Sequence[Json]) -> list[Resize]:
    """Return new sizes of replica sets that all have pods; the largest gets the rounding remainder.

    For equal sizes, the newest grows first and the oldest shrinks first.
    """
    allowed = max_size(deployment) if size(deployment) > 0 else 0
    to_add = allowed - total_size(replica_sets)
    ordered = largest_first(replica_sets, newest_first=to_add > 0) if to_add else replica_sets
    sizes, added = [], 0
    for replica_set in ordered:
        left = to_add - added
        if not to_add or not left:
            share = 0
        else:
            fraction = _fraction(deployment, replica_set)
            share = min(fraction, left) if to_add > 0 else max(fraction, left)
        sizes.append(size(replica_set) + share)
        added += share
    if sizes:
        sizes[0] = max(0, sizes[0] + to_add - added)
    return [Resize(*pair) for pair in zip(ordered, sizes, strict=True)]


def _fraction(deployment: Json, replica_set: Json) -> int:
    """Return the size change that preserves the replica set's fraction of the total."""
    if size(deployment) == 0:
        return -size(replica_set)
    before = max_replicas(replica_set) or part(deployment, "status").get("replicas") or 0
    if not before:
        return 0
    # Round halves away from zero, as Go does.
    number = size(replica_set) * max_size(deployment) / before
    return (int(number + 0.5) if number >= 0 else int(number - 0.5)) - size(replica_set)


def rollback_revision(deployment: Json) -> int | None:
    """Return the requested rollback revision, 0 for the previous one; None without a request."""
    try:
        return parse_int64(annotations_of(deployment).get(ROLLBACK_TO) or "")
    except ValueError:
        return None


async def roll_back(actions: Actions, deployment: Json, sets: ReplicaSets, revision: int) -> None:
    """Restore the template and annotations of that revision. Raises StatusError."""
    if sets.new is None:
        await create_new_replica_set(actions, deployment, sets)
    wanted = revision or last_revision(sets.all)
    replica_set = next((replica_set for replica_set in sets.all if wanted and revision_of(replica_set) == wanted), None)
    if replica_set is None:
        message = "Unable to find the revision to rollback to." if wanted else "Unable to find last revision."
        actions.warn(deployment, _NOT_FOUND, message)
        await _write(actions, deployment)
    elif same_template(deployment["spec"]["template"], replica_set["spec"]["template"]):
        name = name_of(deployment)
        message = f'The rollback revision contains the same template as current deployment "{name}"'
        actions.warn(deployment, _UNCHANGED, message)
        await _write(actions, deployment)
    else:
        await _write(actions, rolled_back(deployment, replica_set))
        message = f'Rolled back deployment "{name_of(deployment)}" to revision {wanted}'
        actions.tell(deployment, _DONE, message)


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


async def clean_up(actions: Actions, deployment: Json, old: Iterable[Json]) -> None:
    """Delete old replica sets without pods beyond the limit, lowest revision first. Raises StatusError."""
    for replica_set in dispensable(deployment, old):
        await actions.delete(deployment, replica_set)


def dispensable(deployment: Json, old: Iterable[Json]) -> list[Json]:
    limit = deployment["spec"].get("revisionHistoryLimit")
    if limit in (None, _NO_LIMIT):
        return []
    staying = sorted((replica_set for replica_set in old if not is_deleting(replica_set)), key=by_revision)
    return [replica_set for replica_set in staying[: max(0, len(staying) - limit)] if _is_empty(replica_set)]


def _is_empty(replica_set: Json) -> bool:
    status = replica_set.get("status") or {}
    is_seen = (metadata(replica_set).get("generation") or 0) <= (status.get("observedGeneration") or 0)
    return is_seen and not status.get("replicas") and size(replica_set) == 0
