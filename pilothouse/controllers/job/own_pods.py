"""Pods of a job, with adoption and release."""

from __future__ import annotations

from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.rest.client import Client
from pilothouse.controllers.job.pods import TRACKING_FINALIZER, is_tracked
from pilothouse.controllers.resources import JOBS, PODS
from pilothouse.controllers.workloads.controller_index import controlled_or_orphaned, index_by_controller
from pilothouse.controllers.workloads.ref_manager import ControllerRefManager
from pilothouse.kinds.owners import is_controlled_by
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of
from pilothouse.machinery.selectors.labels import from_label_selector


class OwnPods:
    def __init__(self, client: Client, pods: SharedIndexInformer) -> None:
        self._client = client
        self._pods = pods
        index_by_controller(pods)

    async def of(self, job: Json) -> list[Json]:
        """Return the job's pods after adoption and release. Raises StatusError or CannotAdopt."""
        jobs = self._client.for_resource(JOBS, namespace=namespace_of(job))
        manager = ControllerRefManager(
            self._client,
            PODS,
            job,
            from_label_selector(job["spec"].get("selector")),
            read_owner=lambda: jobs.get(name_of(job)),
            finalizers=(TRACKING_FINALIZER,),
        )
        claimed = await manager.claim(controlled_or_orphaned(self._pods, job))
        return [pod if is_controlled_by(pod, job) else _tracked(pod) for pod in claimed]


def _tracked(pod: Json) -> Json:
    """Return a newly adopted pod with the tracking finalizer, as the cache will show it."""
    if is_tracked(pod):
        return pod
    meta = metadata(pod)
    return {**pod, "metadata": {**meta, "finalizers": [*(meta.get("finalizers") or ()), TRACKING_FINALIZER]}}
