"""PodInfo: the scheduling properties of a pod, parsed once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import HostPort, host_ports
from pilothouse.machinery.objects import Json, labels_of, name_of, namespace_of, uid_of
from pilothouse.scheduler.cache.affinity_terms import PodAffinity, pod_affinity
from pilothouse.scheduler.cache.requests import FOR_CONTAINERS_WITHOUT, Amounts, pod_requests

DEFAULT_SCHEDULER = "default-scheduler"


class PodInfo:
    """A pod with its derived scheduling properties, which never change."""

    def __init__(self, pod: Json) -> None:
        self.pod = pod
        self.uid = uid_of(pod)
        self.key = meta_namespace_key(pod)
        self.name, self.namespace = name_of(pod), namespace_of(pod)
        self.labels = labels_of(pod)
        self.spec: Json = pod["spec"]
        self.priority: int = self.spec.get("priority") or 0
        self.is_terminating = is_deleting(pod)
        self.requests: Amounts = pod_requests(pod)

    def __repr__(self) -> str:
        return f"PodInfo({self.key})"

    @property
    def status(self) -> Json:
        return self.pod.get("status") or {}

    @property
    def node_name(self) -> str:
        return self.spec.get("nodeName") or ""

    @property
    def nominated_node(self) -> str:
        return self.status.get("nominatedNodeName") or ""

    @property
    def scheduler_name(self) -> str:
        return self.spec.get("schedulerName") or DEFAULT_SCHEDULER

    @cached_property
    def counted_requests(self) -> Amounts:
        """Requests for scoring; containers without requests count with a small default."""
        return pod_requests(self.pod, at_least=FOR_CONTAINERS_WITHOUT)

    @cached_property
    def requests_key(self) -> str:
        """Equal for pods with equal resource requests."""
        return f"requests {sorted(self.requests.items())} {sorted(self.counted_requests.items())}"

    @cached_property
    def labels_key(self) -> str:
        return f"pod {self.namespace} {sorted(self.labels.items())}"

    @cached_property
    def affinity(self) -> PodAffinity:
        return pod_affinity(self.pod)

    @cached_property
    def host_ports(self) -> frozenset[HostPort]:
        """(protocol, address, port) of every host port."""
        return frozenset(host_ports(self.spec))

    @cached_property
    def claim_keys(self) -> tuple[str, ...]:
        """Keys of the PersistentVolumeClaims of the pod."""
        return tuple(f"{self.namespace}/{name}" for name in self._claim_names())

    def _claim_names(self) -> Iterator[str]:
        for volume in self.spec.get("volumes") or ():
            if "persistentVolumeClaim" in volume:
                yield volume["persistentVolumeClaim"]["claimName"]
            elif "ephemeral" in volume:
                yield f"{self.name}-{volume['name']}"

    def is_same_on_its_node(self, other: PodInfo) -> bool:
        """Return whether no property relevant to other pods changed."""
        return (
            self.labels == other.labels
            and self.is_terminating == other.is_terminating
            and self.requests == other.requests
            and self.spec == other.spec
        )

    def refresh(self, pod: Json) -> None:
        """Take a newer state of the pod with equal derived properties."""
        self.pod, self.spec, self.labels = pod, pod["spec"], labels_of(pod)

    def on_node(self, node_name: str) -> PodInfo:
        """Return a copy of the pod as bound to the node."""
        placed = object.__new__(PodInfo)
        placed.__dict__ |= self.__dict__
        placed.spec = {**self.spec, "nodeName": node_name}
        placed.pod = {**self.pod, "spec": placed.spec}
        return placed
