"""Convergence of a StatefulSet's pods.

OrderedReady (default): one pod at a time is created, lowest ordinal first, once all earlier pods are available; one at
a time is deleted, highest first. Parallel: all at once. Afterwards an update replaces pods from the highest ordinal
down to the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import aclosing
from itertools import islice
from typing import Any

from pilothouse.apiserver.server.features import enabled
from pilothouse.controllers.statefulset.identity import claim_templates, identity_matches, ordinal_of, storage_matches
from pilothouse.controllers.statefulset.members import Members, Versions, is_running_and_ready, revision_of
from pilothouse.controllers.statefulset.pods import StatefulPods
from pilothouse.controllers.workloads.pod_control import SlowStartError, slow_start
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import has_ended, phase_of
from pilothouse.machinery.event_loop import yield_periodically
from pilothouse.machinery.gofmt import scaled_int_or_percent
from pilothouse.machinery.objects import Json, name_of

BURST = 500
"""Maximum pods that one pass creates, updates or deletes."""


class Convergence:
    """One pass over the pods of one StatefulSet. Errors are those of StatefulPods.

    A pass of a parallel StatefulSet handles at most BURST pods; their informer events start the next pass. `is_current`
    returns False once the cache has another generation of the StatefulSet.
    """

    def __init__(
        self, pods: StatefulPods, versions: Versions, members: Members, is_current: Callable[[], bool]
    ) -> None:
        self._pods = pods
        self._versions = versions
        self._set = versions.stateful_set
        self._members = members
        self._is_current = is_current
        self._has_claims = bool(claim_templates(self._set))
        self._in_order = self._set["spec"].get("podManagementPolicy") != "Parallel"

    async def run(self) -> int:
        """Take all steps possible now; return the number of pods deleted for an update."""
        condemned = self._members.condemned
        for pods, do in (
            (self._in_ordinal_order() if self._in_order else self._in_need(), self._keep),
            (filter(self._lacks_owned_claims, condemned), self._own_claims),
            (condemned if self._in_order else [pod for pod in condemned if not is_deleting(pod)], self._remove),
        ):
            if await self._blocked_by(pods, do):
                return 0
        strategy = self._set["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return 0
        rolling = strategy.get("rollingUpdate") or {}
        targets = self._members.from_partition(rolling.get("partition") or 0)
        if enabled("MaxUnavailableStatefulSet"):
            most = max_unavailable(rolling.get("maxUnavailable"), len(self._members.wanted))
            # Delete the highest outdated pods, limited by `room` for unavailable pods and by BURST.
            room = most - self._members.unavailable
            outdated = filter(self._is_outdated, targets)
            chosen = [*islice(outdated, max(0, min(room, BURST)))]
            for pod in chosen:
                await self._pods.delete(self._set, pod)
            return len(chosen)
        # Delete the highest outdated pod, if all higher pods exist and are available.
        for ordinal, pod in zip(reversed(self._members.wanted), targets, strict=False):
            if ordinal_of(pod) != ordinal:
                return 0
            if self._is_outdated(pod):
                await self._pods.delete(self._set, pod)
                return 1
            if self._members.is_unavailable(pod):
                return 0
        return 0

    def _in_ordinal_order(self) -> Iterator[Json]:
        """Yield every replica, existing or absent; the first absent pod ends the pass."""
        known = self._members.replicas
        return (known.get(ordinal) or self._versions.absent_pod(ordinal) for ordinal in self._members.wanted)

    def _in_need(self) -> Iterator[Json]:
        """Yield existing replicas that need work, then absent replicas that can be created."""
        absent = map(self._versions.absent_pod, self._members.absent())
        yield from filter(self._needs_care, self._members.replicas.values())
        yield from (pod for pod in absent if not self._pods.claims.is_stale(self._set, pod))

    async def _blocked_by(self, pods: Iterable[Json], do: Callable[[Json], Coroutine[Any, Any, bool]]) -> bool:
        """Call `do` for each pod; return whether a pod blocks the rest. OrderedReady stops at the first blocking
        pod."""
        if self._in_order:
            async with aclosing(yield_periodically(pods)) as each_pod:
                async for pod in each_pod:
                    if await do(pod):
                        return True
            return False
        batch = [*islice(pods, BURST)]
        remaining = iter(batch)
        try:
            done = await slow_start(len(batch), lambda: do(next(remaining)), goes_on=self._is_current)
        except SlowStartError as failed:
            raise failed.error from None
        return done < len(batch)

    def _needs_care(self, pod: Json) -> bool:
        phase = phase_of(pod)
        may_lack_claims = phase == "Pending" and self._has_claims
        return not phase or has_ended(pod) or may_lack_claims or not self._is_right(pod)

    async def _keep(self, pod: Json) -> bool:
        """Create, replace or update the pod; return whether later pods must wait."""
        if has_ended(pod):
            if not is_deleting(pod):
                await self._pods.delete(self._set, pod)
            return True  # recreated after its deletion
        if not phase_of(pod):
            if not self._pods.claims.is_stale(self._set, pod):
                await self._pods.create(self._set, self._versions.new_pod(pod))
            return True
        if phase_of(pod) == "Pending":
            await self._pods.create_missing_claims(self._set, pod)
        if self._in_order and (self._members.is_unavailable(pod) or not is_running_and_ready(pod)):
            return True
        if not self._is_right(pod):
            await self._pods.update(self._versions.update_set, pod)
        return False

    def _is_right(self, pod: Json) -> bool:
        if not identity_matches(self._set, pod):
            return False
        if not self._has_claims:
            return True
        return storage_matches(self._set, pod) and self._pods.claims.are_owned(self._versions.update_set, pod)

    async def _own_claims(self, pod: Json) -> bool:
        await self._pods.claims.own(self._versions.update_set, pod)
        return False

    def _lacks_owned_claims(self, pod: Json) -> bool:
        return not self._pods.claims.are_owned(self._versions.update_set, pod)

    async def _remove(self, pod: Json) -> bool:
        """Delete a surplus pod; with OrderedReady, an unhealthy pod only if it is the first unavailable one."""
        if is_deleting(pod):
            return True
        is_healthy = is_running_and_ready(pod) and self._members.is_available(pod)
        if self._in_order and not is_healthy and pod is not self._members.first_unavailable:
            return True
        await self._pods.delete(self._set, pod)
        return True

    def _is_outdated(self, pod: Json) -> bool:
        return revision_of(pod) != name_of(self._versions.update) and not is_deleting(pod)


def max_unavailable(value: int | str | None, replicas: int) -> int:
    """Resolve maxUnavailable; percentages are rounded down, minimum 1."""
    return max(1, 1 if value is None else scaled_int_or_percent(value, replicas, round_up=False))
