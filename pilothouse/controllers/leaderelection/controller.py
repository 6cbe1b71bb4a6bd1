"""leader-election-controller: elects a leader for every lease with candidates.

Elections are stateless. Each step inspects the lease and its candidates and takes one action:

    nothing     the best candidate already leads, or a response is pending
    ping        candidates without a recent renewal are asked to respond (`pingTime`)
    elect       the best responding candidate (`renewTime`) becomes the holder
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import ObjectName
from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller, Requeue
from pilothouse.controllers.context import ControllerContext, with_last_state
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
from pilothouse.controllers.resources import LEASE_CANDIDATES, LEASES
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.objects import Json, name_of, namespace_of, part, text
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import format_micro_time

logger = logging.getLogger(__name__)

NAME = "leader-election-controller"
ELECTION = timedelta(seconds=5)
"""Response time of candidates, and validity of a response."""
_LOOK_AGAIN = Requeue(5.0)
DURATION = 5
"""Lease duration in seconds after an election."""
GARBAGE_COLLECTION_PERIOD = 30 * 60.0


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
        objects = (obj for obj in self._candidates.indexer.list() if namespace_of(obj) == lease.namespace)
        parsed = (candidate_of(obj, now) for obj in objects if text(obj, "spec", "leaseName") == lease.name)
        candidates = [candidate for candidate in parsed if candidate is not None]
        if not candidates:
            return None
        try:
            if not self._is_election_needed(lease, candidates, now):
                return _LOOK_AGAIN
            # Ping candidates without a recent renewal, and wait for pending responses.
            waiting = False
            for candidate in candidates:
                if candidate.pinged is not None and not candidate.has_answered and now - candidate.pinged < ELECTION:
                    waiting = True
                elif now - candidate.renewed < ELECTION:
                    continue
                elif candidate.pinged is None or (now - candidate.pinged > ELECTION and candidate.has_answered):
                    obj = candidate.obj
                    resource = self._context.client.for_resource(LEASE_CANDIDATES, namespace=namespace_of(obj))
                    await resource.update({**obj, "spec": {**obj["spec"], "pingTime": format_micro_time(now)}})
                    waiting = True
            if waiting:
                return _LOOK_AGAIN
            answered = [candidate for candidate in candidates if now - candidate.renewed < ELECTION]
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
        if any(now - candidate.renewed > VALID_FOR / 2 for candidate in candidates):
            return True  # so that they respond before they are garbage collected
        if best_strategy(candidates) != OLDEST_EMULATION_VERSION:
            return False
        best = best_leader(candidates)
        return best is not None and best.name != holder_of(lease)

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
    return ResourceEventHandlerFuncs(add=enqueue, update=lambda old, new: enqueue(new), delete=with_last_state(enqueue))


def holder_of(lease: Json) -> str:
    return text(lease, "spec", "holderIdentity")


def is_expired(lease: Json, now: datetime) -> bool:
    renewed, duration = moment_of(lease, "renewTime"), part(lease, "spec").get("leaseDurationSeconds")
    return renewed is None or duration is None or (now - renewed).total_seconds() > duration


def new_lease(namespace: str, name: str, strategy: str, holder: str, now: datetime) -> Json:
    """Return a new lease; without a holder, another controller elects one."""
    spec: Json = {"strategy": strategy, "leaseDurationSeconds": DURATION, "renewTime": format_micro_time(now)}
    if holder:
        spec["holderIdentity"] = holder
    meta = {"namespace": namespace, "name": name}
    return {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": meta, "spec": spec}


def with_elected(lease: Json, strategy: str, holder: str, now: datetime) -> Json:
    """Return the lease with the elected holder. If the current holder still renews, only preferredHolder is set."""
    elected = copy.deepcopy(lease)
    spec = elected.setdefault("spec", {})
    spec["strategy"] = strategy
    if not holder or holder == holder_of(lease):
        return elected
    if not holder_of(lease) or is_expired(lease, now):
        for field in ("preferredHolder", "acquireTime"):
            spec.pop(field, None)
        renewed = {"renewTime": format_micro_time(now), "leaseDurationSeconds": DURATION}
        spec.update(holderIdentity=holder, **renewed)
    else:
        spec["preferredHolder"] = holder
    return elected


async def collect_expired_candidates(context: ControllerContext) -> None:
    """Delete expired LeaseCandidates periodically, until cancelled."""
    informer = context.informer(LEASE_CANDIDATES)
    await informer.wait_synced()
    while True:
        for candidate in informer.indexer.list():
            # Delete the candidate if expired, after a fresh read: the cache may be stale.
            if not _is_expired(context, candidate):
                continue
            candidates = context.client.for_resource(LEASE_CANDIDATES, namespace=namespace_of(candidate))
            try:
                if _is_expired(context, await candidates.get(name_of(candidate))):
                    await candidates.delete(name_of(candidate))
            except NotFound:
                continue
            except StatusError as error:
                logger.error("error deleting lease candidate %s: %s", name_of(candidate), error)
        await context.clock.sleep(GARBAGE_COLLECTION_PERIOD)


def _is_expired(context: ControllerContext, candidate: Json) -> bool:
    return candidate_of(candidate, utc_now(context.clock)) is None
