"""leader-election-controller: elects a leader for every lease with candidates.

Elections are stateless. Each step inspects the lease and its candidates and takes one action:

    nothing     the best candidate already leads, or a response is pending
    ping        candidates without a recent renewal are asked to respond (`pingTime`)
    elect       the best responding candidate (`renewTime`) becomes the holder
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import ObjectName, last_known_state
from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller, Requeue
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.leaderelection.candidates import (
    OLDEST_EMULATION_VERSION,
    VALID_FOR,
    Candidate,
    DifferentStrategies,
    best_leader,
    best_strategy,
    candidate_of,
    moment_of,
)
from pilothouse.controllers.leaderelection.lease import holder_of, is_expired, new_lease, with_elected
from pilothouse.controllers.resources import LEASE_CANDIDATES, LEASES
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, name_of, namespace_of, text
from pilothouse.machinery.times import format_micro_time

logger = logging.getLogger(__name__)

NAME = "leader-election-controller"
ELECTION = timedelta(seconds=5)
"""Response time of candidates, and validity of a response."""
_LOOK_AGAIN = Requeue(5.0)


async def run(context: ControllerContext) -> None:
    await ElectionController(context).run()


class ElectionController:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._leases, self._candidates = context.informer(LEASES), context.informer(LEASE_CANDIDATES)
        queue = context.queue(NAME, ObjectName)

        def enqueue_lease(lease: Json) -> None:
            queue.add(ObjectName(namespace_of(lease), name_of(lease)))

        def enqueue_candidate(candidate: Json) -> None:
            renewed, pinged = moment_of(candidate, "renewTime"), moment_of(candidate, "pingTime")
            if renewed is None or pinged is None or renewed >= pinged:  # otherwise its election is in progress
                queue.add(ObjectName(namespace_of(candidate), text(candidate, "spec", "leaseName")))

        self._leases.add_event_handler(_whatever_happens(enqueue_lease))
        self._candidates.add_event_handler(_whatever_happens(enqueue_candidate))
        caches = (self._leases, self._candidates)
        self._controller = Controller(NAME, self.step, caches=caches, queue=queue, clock=context.clock)

    async def run(self) -> None:
        await self._controller.run()

    async def step(self, lease: ObjectName) -> Requeue | None:
        """Take one step of the lease's election."""
        now = utc_now(self._context.clock)
        objects = (each for each in self._candidates.indexer.list() if namespace_of(each) == lease.namespace)
        found = (candidate_of(each, now) for each in objects if text(each, "spec", "leaseName") == lease.name)
        candidates = [each for each in found if each is not None]
        if not candidates:
            return None
        try:
            if not self._is_election_needed(lease, candidates, now):
                return _LOOK_AGAIN
            if await self._ask_candidates(candidates, now):
                return _LOOK_AGAIN
            answered = [each for each in candidates if now - each.renewed < ELECTION]
            if not answered:
                logger.error("no available candidates for %s", lease)
                return None
            strategy = best_strategy(answered)
            leader = best_leader(answered) if strategy == OLDEST_EMULATION_VERSION else None
            await self._write(lease, strategy, leader.name if leader else "", now)
            return _LOOK_AGAIN
        except DifferentStrategies as error:
            logger.error("failed to reconcile election step for %s: %s", lease, error)
            return _LOOK_AGAIN

    def _is_election_needed(self, name: ObjectName, candidates: Sequence[Candidate], now: datetime) -> bool:
        lease = self._leases.indexer.get_by_key(str(name))
        if lease is None or is_expired(lease, now) or not holder_of(lease):
            return True
        if any(now - each.renewed > VALID_FOR / 2 for each in candidates):
            return True  # so that they respond before they are garbage collected
        if best_strategy(candidates) != OLDEST_EMULATION_VERSION:
            return False
        best = best_leader(candidates)
        return best is not None and best.name != holder_of(lease)

    async def _ask_candidates(self, candidates: Sequence[Candidate], now: datetime) -> bool:
        """Ping candidates without a recent renewal; return whether responses are pending."""
        waiting = False
        for each in candidates:
            if each.pinged is not None and not each.has_answered and now - each.pinged < ELECTION:
                waiting = True
            elif now - each.renewed < ELECTION:
                continue
            elif each.pinged is None or (now - each.pinged > ELECTION and each.has_answered):
                await self._ping(each.obj, now)
                waiting = True
        return waiting

    async def _ping(self, candidate: Json, now: datetime) -> None:
        candidates = self._context.client.for_resource(LEASE_CANDIDATES, namespace=namespace_of(candidate))
        await candidates.update({**candidate, "spec": {**candidate["spec"], "pingTime": format_micro_time(now)}})

    async def _write(self, name: ObjectName, strategy: str, holder: str, now: datetime) -> None:
        leases = self._context.client.for_resource(LEASES, namespace=name.namespace)
        try:
            await leases.create(new_lease(name.namespace, name.name, strategy, holder, now))
        except AlreadyExists:
            existing = await leases.get(name.name)
            elected = with_elected(existing, strategy, holder, now)
            if elected == existing:
                return
            await leases.update(elected)
        logger.info("lease %s: strategy %s, elected %s", name, strategy, holder or "by another controller")


def _whatever_happens(enqueue: Callable[[Json], None]) -> ResourceEventHandlerFuncs:
    def deleted(obj: Deleted) -> None:
        if state := last_known_state(obj):
            enqueue(state)

    return ResourceEventHandlerFuncs(add=enqueue, update=lambda old, new: enqueue(new), delete=deleted)
