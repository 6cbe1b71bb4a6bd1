"""ttl-after-finished-controller: deletes finished jobs, with their dependents, after ttlSecondsAfterFinished."""

from __future__ import annotations

from datetime import datetime

from prometheus_client import CollectorRegistry, Histogram

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.rest.options import DeleteOptions
from pilothouse.controllers.context import ControllerContext, metrics_in
from pilothouse.controllers.resources import JOBS
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, items, name_of, namespace_of, part, uid_of
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.machinery.times import parse_time


class JobFinishTimeUnknown(PilothouseError):
    """A finished job has no finish time."""


async def run(context: ControllerContext) -> None:
    queue, informer = context.queue("ttl_jobs_to_delete", str), context.informer(JOBS)
    latency = metrics_in(context.registry, _latency)

    def enqueue(job: Json) -> None:
        if needs_cleanup(job):
            queue.add(meta_namespace_key(job))

    informer.add_event_handler(ResourceEventHandlerFuncs(add=enqueue, update=lambda old, new: enqueue(new)))

    async def sync(key: str) -> Requeue | None:
        cached = informer.indexer.get_by_key(key)
        if cached is None or not needs_cleanup(cached):
            return None
        if (left := seconds_left(cached, utc_now(context.clock))) > 0:
            return Requeue(left)
        jobs = context.client.for_resource(JOBS, namespace=namespace_of(cached))
        try:
            job = await jobs.get(name_of(cached))  # fresh read: the TTL may have been extended
            if not needs_cleanup(job):
                return None
            if (left := seconds_left(job, utc_now(context.clock))) > 0:
                return Requeue(left)
            await jobs.delete(name_of(job), DeleteOptions(propagation_policy="Foreground", uid=uid_of(job)))
        except NotFound:
            return None
        latency.observe(-left)
        return None

    workers = context.config.concurrent_ttl_after_finished_syncs
    name = "ttl_after_finished"
    await Controller(name, sync, caches=(informer,), workers=workers, queue=queue, clock=context.clock).run()


def _latency(registry: CollectorRegistry) -> Histogram:
    return Histogram(
        "job_deletion_duration_seconds",
        "The time it took to delete the job since it became eligible for deletion",
        subsystem="ttl_after_finished_controller",
        buckets=[0.1 * 2**step for step in range(14)],
        registry=registry,
    )


def needs_cleanup(job: Json) -> bool:
    """Return whether the job is finished, has a TTL, and is not terminating."""
    limited = part(job, "spec").get("ttlSecondsAfterFinished") is not None
    return limited and _finished(job) is not None and not is_deleting(job)


def seconds_left(job: Json, now: datetime) -> float:
    """Return the seconds until the TTL expires. Raises JobFinishTimeUnknown."""
    finished = _finished(job) or {}
    moment = parse_time(finished["lastTransitionTime"]) if finished.get("lastTransitionTime") else None
    if moment is None:
        where = f"{namespace_of(job)}/{name_of(job)}"
        raise JobFinishTimeUnknown(f"unable to find the time when the Job {where} finished")
    return float(job["spec"]["ttlSecondsAfterFinished"] - (now - moment).total_seconds())


def _finished(job: Json) -> Json | None:
    conditions = items(job, "status", "conditions")
    ends = (
        condition
        for condition in conditions
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
    )
    return next(ends, None)
