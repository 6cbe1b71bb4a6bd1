"""Removal of the tracking finalizer from pods that no running job counts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.controller import Controller
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.job.pod_changes import RELEASE
from pilothouse.controllers.job.pods import is_tracked
from pilothouse.controllers.job.spec import is_finished, is_managed_elsewhere
from pilothouse.controllers.resources import PODS
from pilothouse.controllers.workloads.controller_index import CONTROLLER_UID_INDEX, orphans_in
from pilothouse.controllers.workloads.pod_control import PodControl
from pilothouse.kinds.owners import controller_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, labels_of, namespace_of, uid_of
from pilothouse.machinery.selectors.labels import Selector, from_label_selector
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

_NAME = "job_orphan_pod"


@dataclass(frozen=True, slots=True)
class _Orphans:
    """Orphans to release: one pod by its key, or the pods of a deleted job and unowned pods matching its selector."""

    pod: str = ""
    namespace: str = ""
    job_uid: str = ""
    selector: Selector | None = None


class OrphanPods:
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
