"""Garbage collection of expired LeaseCandidates."""

from __future__ import annotations

import logging

from pilothouse.client.clock import utc_now
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.leaderelection.candidates import candidate_of
from pilothouse.controllers.resources import LEASE_CANDIDATES
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

EVERY = 30 * 60.0


async def run(context: ControllerContext) -> None:
    informer = context.informer(LEASE_CANDIDATES)
    await informer.wait_synced()
    while True:
        for candidate in informer.indexer.list():
            await _delete_if_expired(context, candidate)
        await context.clock.sleep(EVERY)


async def _delete_if_expired(context: ControllerContext, cached: Json) -> None:
    """Delete the candidate if expired, after a fresh read: the cache may be stale."""
    if not _is_expired(context, cached):
        return
    candidates = context.client.for_resource(LEASE_CANDIDATES, namespace=namespace_of(cached))
    try:
        if _is_expired(context, await candidates.get(name_of(cached))):
            await candidates.delete(name_of(cached))
    except NotFound:
        return
    except StatusError as error:
        logger.error("error deleting lease candidate %s: %s", name_of(cached), error)


def _is_expired(context: ControllerContext, candidate: Json) -> bool:
    return candidate_of(candidate, utc_now(context.clock)) is None
