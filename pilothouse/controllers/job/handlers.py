"""Event handlers that enqueue jobs.

New jobs and changed specs are enqueued at once; pod events are batched for a second.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.context import ControllerContext, with_last_state
from pilothouse.controllers.job.pod_changes import RELEASE, ReleasedPods
from pilothouse.controllers.job.pods import is_finished, is_managed_elsewhere, is_tracked
from pilothouse.controllers.job.verdict import seconds_to_deadline
from pilothouse.controllers.resources import PODS
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.owner_lookup import CONTROLLER_UID_INDEX, orphans_in
from pilothouse.controllers.workloads.pod_control import PodControl
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import controller_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, labels_of, metadata, namespace_of, resource_version_of, uid_of
from pilothouse.machinery.selectors.labels import Selector, from_label_selector
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)
_NAME = "job_orphan_pod"


class JobHandlers:
    _orphans: OrphanPods

    def __init__(
        self,
        jobs: SharedIndexInformer,
        queue: RateLimitingQueue[str],
        expectations: ControllerExpectations,
        released: ReleasedPods,
        forget: Callable[[Json], None],
        context: ControllerContext,
    ) -> None:
        self._jobs = jobs
        self._queue = queue
        self._expectations = expectations
        self._released = released
        self._forget = forget
        self._clock = context.clock
        self._batch_period = context.config.jobs.sync_batch_period

    def attach(self, pods: SharedIndexInformer, orphans: OrphanPods) -> None:
        self._orphans = orphans
        jobs = ResourceEventHandlerFuncs(add=self._at_once, update=self._job_updated, delete=self._job_deleted)
        self._jobs.add_event_handler(jobs)
        of_pods = ResourceEventHandlerFuncs(
            add=self._pod_added,
            update=self._pod_updated,
            delete=with_last_state(lambda pod: self._pod_deleting(pod, gone=True)),
        )
        pods.add_event_handler(of_pods)

    def job_of(self, pod: Json) -> Json | None:
        """Return the job that controls the pod; None if it no longer exists."""
        reference = controller_of(pod)
        return None if reference is None else self._resolve(namespace_of(pod), reference)

    def _resolve(self, namespace: str, reference: Json) -> Json | None:
        if reference["kind"] != "Job":
            return None
        job = self._jobs.indexer.get_by_key(f"{namespace}/{reference['name']}")
        return job if job is not None and uid_of(job) == reference["uid"] else None

    def _at_once(self, job: Json) -> None:
        self._queue.add(meta_namespace_key(job))

    def _soon(self, job: Json) -> None:
        self._queue.add_after(meta_namespace_key(job), self._batch_period)

    def _job_updated(self, old: Json, new: Json) -> None:
        if is_finished(new):
            self._forget(new)
            self._orphans.add_pods_of(new)
            return
        if metadata(old).get("generation") == metadata(new).get("generation"):
            self._soon(new)
        else:
            self._at_once(new)
        if old["spec"].get("activeDeadlineSeconds") != new["spec"].get("activeDeadlineSeconds"):
            left = seconds_to_deadline(new, utc_now(self._clock))
            if left is not None:
                self._queue.add_after(meta_namespace_key(new), left)

    def _job_deleted(self, deleted: Deleted) -> None:
        if (job := last_known_state(deleted)) is not None:
            self._at_once(job)
            self._forget(job)
            self._orphans.add_pods_of(job)

    def _pod_added(self, pod: Json) -> None:
        if is_deleting(pod):  # first seen while terminating, as after a restart: no creation is expected
            self._pod_deleting(pod, gone=False)
            return
        if controller_of(pod) is not None:
            if (job := self.job_of(pod)) is not None:
                self._expectations.creation_observed(meta_namespace_key(job))
                self._soon(job)
            return
        self._orphan_seen(pod, look_for_jobs=True)

    def _pod_updated(self, old: Json, new: Json) -> None:
        if resource_version_of(old) == resource_version_of(new):
            return
        if is_deleting(new):
            self._pod_deleting(new, gone=False)
            return
        before, after = controller_of(old), controller_of(new)
        if before is not None and before != after:
            self._pod_of_job_changed(self._resolve(namespace_of(old), before), new)
        if after is not None:
            self._pod_of_job_changed(self.job_of(new), new)
            return
        self._orphan_seen(new, look_for_jobs=before != after or labels_of(old) != labels_of(new))

    def _pod_of_job_changed(self, job: Json | None, pod: Json) -> None:
        if job is None:
            return
        if not is_tracked(pod):
            self._released.observed(meta_namespace_key(job), uid_of(pod))
        self._soon(job)

    def _pod_deleting(self, pod: Json, *, gone: bool) -> None:
        job = self.job_of(pod)
        if job is None or is_finished(job):
            if is_tracked(pod):
                self._orphans.add_pod(pod)  # no job sync will remove its finalizer
            return
        key = meta_namespace_key(job)
        self._expectations.deletion_observed(key, uid_of(pod))
        if gone or not is_tracked(pod):
            self._released.observed(key, uid_of(pod))
        self._soon(job)

    def _orphan_seen(self, pod: Json, *, look_for_jobs: bool) -> None:
        if is_tracked(pod):
            self._orphans.add_pod(pod)
        for job in self._jobs_for(pod) if look_for_jobs else ():
            self._soon(job)

    def _jobs_for(self, pod: Json) -> Iterator[Json]:
        """Yield the jobs that may adopt the pod."""
        labels = labels_of(pod)
        for job in self._jobs.indexer.by_index(NAMESPACE_INDEX, namespace_of(pod)) if labels else ():
            if from_label_selector(job["spec"].get("selector")).matches(labels):
                yield job


@dataclass(frozen=True, slots=True)
class _Orphans:
    """Orphans to release: one pod by its key, or the pods of a deleted job and unowned pods matching its selector."""

    pod: str = ""
    namespace: str = ""
    job_uid: str = ""
    selector: Selector | None = None


class OrphanPods:
    """Removes the tracking finalizer from pods that no running job counts."""

    def __init__(
        self, context: ControllerContext, control: PodControl, job_of: Callable[[Json], Json | None], workers: int
    ) -> None:
        self._pods = context.informer(PODS)
        self._control = control
        self._job_of = job_of
        self._queue = context.queue(_NAME, _Orphans, first_delay=1.0, max_delay=60.0)
        self._controller = Controller(
            _NAME, self._sync, caches=(self._pods,), workers=workers, queue=self._queue, clock=context.clock
        )

    async def run(self) -> None:
        await self._controller.run()

    def add_pod(self, pod: Json) -> None:
        self._queue.add(_Orphans(pod=meta_namespace_key(pod)))

    def add_pods_of(self, job: Json) -> None:
        selector = from_label_selector(job["spec"].get("selector"))
        self._queue.add(_Orphans(namespace=namespace_of(job), job_uid=uid_of(job), selector=selector))

    async def _sync(self, orphans: _Orphans) -> None:
        failed: StatusError | None = None
        for pod in [*self._find(orphans)]:
            if is_tracked(pod) and self._is_left(pod):
                try:
                    await self._control.patch(pod, RELEASE)
                except NotFound:
                    continue
                except StatusError as error:
                    failed = failed or error
        if failed is not None:
            raise failed

    def _find(self, orphans: _Orphans) -> Iterator[Json]:
        if orphans.pod:
            pod = self._pods.indexer.get_by_key(orphans.pod)
            yield from () if pod is None else (pod,)
            return
        yield from self._pods.indexer.by_index(CONTROLLER_UID_INDEX, orphans.job_uid)
        for pod in orphans_in(self._pods, orphans.namespace):
            if orphans.selector is not None and orphans.selector.matches(labels_of(pod)):
                yield pod

    def _is_left(self, pod: Json) -> bool:
        """Return whether the finalizer may be removed: not for other owners, running jobs, or jobs managed
        elsewhere."""
        reference = controller_of(pod)
        if reference is None:
            return True
        if reference["kind"] != "Job" or reference["apiVersion"] != "batch/v1":
            return False
        job = self._job_of(pod)
        return job is None or (is_finished(job) and not is_managed_elsewhere(job))
