"""Scaling of a resized or paused deployment, without a rollout."""

from __future__ import annotations

from pilothouse.controllers.deployment.actions import Actions
from pilothouse.controllers.deployment.fenceposts import ROLLING_UPDATE, strategy_of
from pilothouse.controllers.deployment.proportions import is_saturated, proportional_sizes
from pilothouse.controllers.deployment.replica_sets import ReplicaSets, active, active_or_latest, size
from pilothouse.controllers.deployment.revisions import desired_replicas
from pilothouse.machinery.objects import Json


def is_resized(deployment: Json, sets: ReplicaSets) -> bool:
    """Return whether an active replica set was last scaled for another deployment size."""
    known = (desired_replicas(each) for each in active(sets.all))
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
