"""Bulk creation, deletion and release of a job's pods, with expectations.

All pods are tried before an error is reported; returned counts reflect partial progress.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

from pilothouse.controllers.job.pods import (
    COMPLETION_INDEX,
    FAILURE_COUNT,
    IGNORED_FAILURE_COUNT,
    TRACKING_FINALIZER,
    failure_count,
    ignored_failure_count,
    is_indexed,
    is_tracked,
    limits_each_index,
    match_failure,
)
from pilothouse.controllers.job.sync_state import SyncState
from pilothouse.controllers.namespace_state import is_refusal_of_terminating_namespace
from pilothouse.controllers.workloads.expectations import ControllerExpectations
from pilothouse.controllers.workloads.pod_control import PodControl, SlowStartError, slow_start
from pilothouse.kinds.pods import is_ready
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, name_of, uid_of
from pilothouse.machinery.status_error import PilothouseError, StatusError

logger = logging.getLogger(__name__)

_AT_ONCE = 32
"""Maximum concurrent requests per job, for fairness between jobs."""

RELEASE: Json = {"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER]}}
_VARIABLE: Json = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}},
}
_MAX_PREFIX = 63 - 5
"""Maximum generateName length that is not truncated."""


@dataclass(frozen=True, slots=True)
class Deleted:
    pods: int
    ready: int
    error: Exception | None


@dataclass(frozen=True, slots=True)
class Released:
    uids: frozenset[str]
    error: Exception | None


class PodChanges:
    def __init__(
        self,
        control: PodControl,
        expectations: ControllerExpectations,
        released: ReleasedPods,
        is_current: Callable[[Json], bool],
    ) -> None:
        """`is_current` returns whether the cache still has the job with this spec."""
        self._control = control
        self._expectations = expectations
        self._released = released
        self._is_current = is_current

    async def create(self, state: SyncState, key: str, count: int, indexes: Iterable[int]) -> Exception | None:
        """Create pods, one per index if given, and count them as active; return the error, if any."""
        self._expectations.expect_creations(key, count)
        attempts, failures = 0, 0
        templates = _templates(state, count, indexes)

        async def create_one() -> None:
            nonlocal attempts, failures
            attempts += 1
            template, prefix = next(templates)
            try:
                await self._control.create(template, state.job, generate_name=prefix)
            except Exception as error:
                if isinstance(error, StatusError) and is_refusal_of_terminating_namespace(error):
                    return  # the namespace would reject all others too
                failures += 1
                raise

        try:
            await slow_start(count, create_one, goes_on=lambda: self._is_current(state.job))
            self._expectations.creation_observed(key, count - attempts)
            return None
        except SlowStartError as error:
            logger.debug("%s: %d pods failed, %d were not tried", key, failures, count - attempts)
            self._expectations.creation_observed(key, failures + count - attempts)
            return error.error if isinstance(error.error, Exception) else error
        finally:
            state.active += attempts - failures

    async def delete(self, job: Json, key: str, pods: Sequence[Json]) -> Deleted:
        """Delete surplus pods. Surplus pods are not counted, so the finalizer is removed first."""
        self._expectations.expect_deletions(key, map(uid_of, pods))

        async def delete_one(pod: Json) -> None:
            try:
                if is_tracked(pod):
                    await self._control.patch(pod, RELEASE)
                await self._control.delete(name_of(pod), job)
            except StatusError:
                self._expectations.deletion_observed(key, uid_of(pod))
                raise

        return _deleted(pods, await _each(pods, delete_one))

    async def delete_active(self, job: Json, pods: Sequence[Json]) -> Deleted:
        """Delete the pods of an ending job; finalizers keep them until counted."""
        return _deleted(pods, await _each(pods, lambda pod: self._control.delete(name_of(pod), job)))

    async def release(self, key: str, pods: Sequence[Json]) -> Released:
        """Remove the finalizer from recorded pods; missing pods count as released."""
        self._released.expect(key, map(uid_of, pods))

        async def release_one(pod: Json) -> None:
            try:
                await self._control.patch(pod, RELEASE)
            except StatusError:
                self._released.observed(key, uid_of(pod))
                raise

        errors = await _each(pods, release_one)
        done = (uid_of(pod) for pod, error in zip(pods, errors, strict=True) if error is None)
        return Released(frozenset(done), next(filter(None, errors), None))


def _templates(state: SyncState, count: int, indexes: Iterable[int]) -> Iterator[tuple[Json, str]]:
    """Yield (template, name prefix) per pod; an empty prefix selects the default."""
    job, template = state.job, template_of(state.job)
    chosen = [*indexes]
    if not chosen:
        yield from ((template, "") for _ in range(count))
    for index in chosen:
        replaced = state.awaiting_replacement.get(index)
        yield template_of_index(job, template, index, replaced), generate_name(job, index)


async def _each(pods: Sequence[Json], do: Callable[[Json], Awaitable[object]]) -> list[Exception | None]:
    """Call `do` for all pods; return an error or None for each. NotFound is not an error."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def in_turn(pod: Json) -> Exception | None:
        async with turn:
            try:
                await do(pod)
            except NotFound:
                return None
            except PilothouseError as error:
                return error
            return None

    return list(await asyncio.gather(*map(in_turn, pods)))


def _deleted(pods: Sequence[Json], errors: list[Exception | None]) -> Deleted:
    return Deleted(errors.count(None), sum(map(is_ready, pods)), next(filter(None, errors), None))


def template_of(job: Json) -> Json:
    """Return the pod template of the job, with the tracking finalizer."""
    template: Json = job["spec"]["template"]
    meta = template.get("metadata") or {}
    finalizers = meta.get("finalizers") or []
    if TRACKING_FINALIZER not in finalizers:
        finalizers = [*finalizers, TRACKING_FINALIZER]
    spec = _with_variable(template["spec"]) if is_indexed(job) else template["spec"]
    return {**template, "metadata": {**meta, "finalizers": finalizers}, "spec": spec}


def template_of_index(job: Json, template: Json, index: int, replaced: Json | None) -> Json:
    """Return the template for one index. `replaced` is the failed pod that the new pod replaces, if any."""
    meta = template["metadata"]
    own = {COMPLETION_INDEX: str(index)}
    annotations = (meta.get("annotations") or {}) | own
    if limits_each_index(job):
        annotations |= _failure_counts(job, replaced)
    labels = (meta.get("labels") or {}) | own
    spec = {**template["spec"], "hostname": f"{name_of(job)}-{index}"}
    return {**template, "metadata": {**meta, "labels": labels, "annotations": annotations}, "spec": spec}


def generate_name(job: Json, index: int) -> str:
    """Return the generateName of an index; the job's name is truncated, never the index."""
    suffix = f"-{index}-"
    return name_of(job)[: _MAX_PREFIX - len(suffix)] + suffix


def _failure_counts(job: Json, replaced: Json | None) -> dict[str, str]:
    if replaced is None:
        return {FAILURE_COUNT: "0"}
    counts = match_failure(job, replaced).counts
    ignored = ignored_failure_count(replaced) + (not counts)
    counted = {FAILURE_COUNT: str(failure_count(replaced) + counts)}
    return counted | ({IGNORED_FAILURE_COUNT: str(ignored)} if ignored else {})


def _with_variable(spec: Json) -> Json:
    lists = {
        field: [_with_index(container) for container in spec[field]]
        for field in ("initContainers", "containers")
        if spec.get(field)
    }
    return spec | lists


def _with_index(container: Json) -> Json:
    variables = container.get("env") or []
    if any(variable["name"] == _VARIABLE["name"] for variable in variables):
        return container
    return {**container, "env": [*variables, _VARIABLE]}


class ReleasedPods:
    """Pods whose finalizer removal is not in the cache yet, and which must not be counted twice."""

    _by_job: dict[str, set[str]]  # job key → uids; sets are never empty

    def __init__(self) -> None:
        self._by_job = {}

    def of(self, key: str) -> frozenset[str]:
        return frozenset(self._by_job.get(key, ()))

    def expect(self, key: str, uids: Iterable[str]) -> None:
        """Record pods whose finalizers are about to be removed."""
        if added := set(uids):
            self._by_job.setdefault(key, set()).update(added)

    def observed(self, key: str, uid: str) -> None:
        """Record that the cache shows the removal, or that the removal failed."""
        if (expected := self._by_job.get(key)) is not None:
            expected.discard(uid)
            if not expected:
                del self._by_job[key]

    def forget(self, key: str) -> None:
        self._by_job.pop(key, None)
