"""replicationcontroller-controller: ReplicaSetController for ReplicationControllers."""

from __future__ import annotations

from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.replicaset.controller import REPLICATION_CONTROLLER, ReplicaSetController


async def run(context: ControllerContext) -> None:
    await ReplicaSetController(context, REPLICATION_CONTROLLER, workers=context.config.concurrent_rc_syncs).run()
