"""Pods of a StatefulSet: existing, absent and condemned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from datetime import datetime

from pilothouse.controllers.history import restored
from pilothouse.controllers.statefulset import identity
from pilothouse.controllers.workloads.pod_control import CONTROLLER_REVISION_HASH, pod_from_template
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import is_available, is_ready, phase_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of, number


@dataclass(frozen=True, slots=True)
class Versions:
    """The StatefulSet at its current revision and at its update revision."""

    stateful_set: Json
    current: Json
    update: Json
    current_set: Json = field(init=False)
    update_set: Json = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "current_set", restored(self.stateful_set, self.current))
        object.__setattr__(self, "update_set", restored(self.stateful_set, self.update))

    def absent_pod(self, ordinal: int) -> Json:
        """Return a placeholder for an absent pod, with its name and revision label."""
        revision = self.current if self._stays_current(ordinal) else self.update
        name, namespace = identity.pod_name(self.stateful_set, ordinal), namespace_of(self.stateful_set)
        labels = {CONTROLLER_REVISION_HASH: name_of(revision)}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": labels}}

    def new_pod(self, absent: Json) -> Json:
        """Return the complete pod to create for a placeholder."""
        is_current = revision_of(absent) == name_of(self.current)
        return new_pod(
            self.current_set if is_current else self.update_set, identity.ordinal_of(absent), revision_of(absent)
        )

    def _stays_current(self, ordinal: int) -> bool:
        strategy = self.stateful_set["spec"].get("updateStrategy") or {}
        rolling, start = strategy.get("rollingUpdate"), identity.ordinals(self.stateful_set).start
        if rolling is not None:
            return bool(ordinal < start + (rolling.get("partition") or 0))
        current = number(self.stateful_set, "status", "currentReplicas")
        return strategy.get("type") == "RollingUpdate" and ordinal < start + current


@dataclass(frozen=True, slots=True)
class Members:
    """The wanted ordinals as a range, and the pods that exist.

    Work and memory are proportional to existing pods, never to `replicas`.
    """

    wanted: range
    replicas: dict[int, Json]
    """Existing pods with wanted ordinals, in ascending order."""
    condemned: list[Json]
    """Existing pods with other ordinals, in descending order."""
    min_ready_seconds: int
    now: datetime

    @staticmethod
    def of(stateful_set: Json, pods: Iterable[Json], now: datetime) -> Members:
        wanted, known = identity.ordinals(stateful_set), sorted(pods, key=identity.ordinal_of)
        replicas = {ordinal: pod for pod in known if (ordinal := identity.ordinal_of(pod)) in wanted}
        condemned = [
            pod for pod in reversed(known) if (ordinal := identity.ordinal_of(pod)) >= 0 and ordinal not in wanted
        ]
        return Members(wanted, replicas, condemned, int(stateful_set["spec"].get("minReadySeconds") or 0), now)

    def absent(self) -> Iterator[int]:
        """Yield the wanted ordinals without a pod, lowest first. The iterator may be as long as the range."""
        return (ordinal for ordinal in self.wanted if ordinal not in self.replicas)

    def from_partition(self, partition: int) -> list[Json]:
        """Return the existing replicas that an update may replace, highest ordinal first."""
        targets = self.wanted[partition:]
        return [pod for ordinal, pod in reversed(self.replicas.items()) if ordinal in targets]

    def is_available(self, pod: Json) -> bool:
        return is_available(pod, self.min_ready_seconds, self.now)

    def is_unavailable(self, pod: Json) -> bool:
        return is_deleting(pod) or not self.is_available(pod)

    @property
    def unavailable(self) -> int:
        """Number of wanted ordinals without an available pod."""
        return len(self.wanted) - sum(not self.is_unavailable(pod) for pod in self.replicas.values())

    @property
    def first_unavailable(self) -> Json | None:
        """The unavailable condemned pod with the lowest ordinal, provided that every replica is available."""
        return next(filter(self.is_unavailable, reversed(self.condemned)), None)


def new_pod(stateful_set: Json, ordinal: int, revision: str) -> Json:
    """Return a new pod with the identity and storage of its ordinal."""
    pod = pod_from_template(stateful_set["spec"]["template"], stateful_set)
    identity.set_identity(stateful_set, pod, ordinal)
    metadata(pod)["labels"][CONTROLLER_REVISION_HASH] = revision
    volumes = identity.volumes_with_claims(stateful_set, pod)
    pod["spec"] = {
        **pod["spec"],
        **identity.network_identity(stateful_set, ordinal),
        **({"volumes": volumes} if volumes else {}),
    }
    return pod


def revision_of(pod: Json) -> str:
    return labels_of(pod).get(CONTROLLER_REVISION_HASH) or ""


def is_running_and_ready(pod: Json) -> bool:
    return phase_of(pod) == "Running" and is_ready(pod)
