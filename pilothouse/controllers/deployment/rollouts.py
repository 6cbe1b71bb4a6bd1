"""The two rollout strategies: RollingUpdate and Recreate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pilothouse.controllers.deployment import new_replica_set
from pilothouse.controllers.deployment.actions import Actions
from pilothouse.controllers.deployment.cleanup import clean_up
from pilothouse.controllers.deployment.fenceposts import max_scaled_down, min_available, new_set_size
from pilothouse.controllers.deployment.replica_sets import ReplicaSets, age, available, size, total, total_size
from pilothouse.controllers.deployment.status import is_complete
from pilothouse.kinds.pods import has_ended
from pilothouse.machinery.objects import Json, uid_of
from pilothouse.machinery.status_error import StatusError


async def roll(actions: Actions, deployment: Json, sets: ReplicaSets) -> None:
    """Take one step of a rolling update: scale up the new replica set, else scale down old ones. Raises StatusError."""
    if sets.new is None:
        await new_replica_set.create(actions, deployment, sets)
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
    shrunk = [await actions.scale(deployment, each, 0) for each in sets.active_old]
    if any(each.is_resized for each in shrunk) or has_old_pods(sets, pods_of):
        return
    if sets.new is None:
        await new_replica_set.create(actions, deployment, sets)
    assert sets.new is not None
    await actions.scale(deployment, sets.new, size(deployment))
    if is_complete(deployment, deployment["status"]):
        await clean_up(actions, deployment, sets.old)


def has_old_pods(sets: ReplicaSets, pods_of: Callable[[Json], Sequence[Json]]) -> bool:
    """Return whether an old replica set has pods that have not ended. Terminating pods still run."""
    if total(sets.old, "replicas") > 0:
        return True
    return any(not has_ended(pod) for each in sets.old for pod in pods_of(each))


async def _shrink_old(actions: Actions, deployment: Json, sets: ReplicaSets, new: Json) -> bool:
    """Scale down old replica sets; return whether any size changed. Errors of single replica sets are left to the next
    sync."""
    room = max_scaled_down(deployment, new, sets.old)
    if total_size(sets.old) == 0 or room <= 0:
        return False
    by_uid = {uid_of(each): each for each in sorted(sets.active_old, key=age)}
    if any(_missing(each) < 0 for each in by_uid.values()):
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
