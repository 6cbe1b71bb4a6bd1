"""PodInfo: the scheduling properties of a pod, parsed once: requests, affinity terms, host ports.

Resource requests are integers, so that sums over many pods are cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import HostPort, host_ports
from pilothouse.kinds.resources import add_to, aggregate, raise_to
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, labels_of, name_of, namespace_of, uid_of
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.selectors.labels import NOTHING, Selector, from_label_selector

DEFAULT_SCHEDULER = "default-scheduler"

Amounts: TypeAlias = dict[str, int]
"""Resource name → amount: cpu in millicores, other resources in whole units."""
CPU, MEMORY, PODS = "cpu", "memory", "pods"
FOR_CONTAINERS_WITHOUT: Amounts = {CPU: 100, MEMORY: 200 << 20}
"""Default requests of a container without requests, for scoring."""
_OF_A_WHOLE_POD = (CPU, MEMORY)


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


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    topology_key: str
    namespaces: frozenset[str]
    selector: Selector
    namespace_selector: Selector
    weight: int = 0
    """Weight of a preferred term; 0 for required terms."""
    key: str = ""
    """Equal for terms that select the same pods."""

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the term selects a pod with these labels in this namespace."""
        inside = namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return inside and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """All affinity terms of a pod."""

    required: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[AffinityTerm, ...] = ()
    preferred_anti: tuple[AffinityTerm, ...] = ()

    @property
    def has_preferences(self) -> bool:
        return bool(self.preferred or self.preferred_anti)


NO_AFFINITY = PodAffinity()


def pod_affinity(pod: Json) -> PodAffinity:
    """Parse the pod's affinity. Raises InvalidSelector."""
    affinity = pod["spec"].get("affinity") or {}
    wanted, unwanted = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    if not (wanted or unwanted):
        return NO_AFFINITY
    namespace = namespace_of(pod)
    return PodAffinity(
        required=_required(wanted, namespace),
        required_anti=_required(unwanted, namespace),
        preferred=_preferred(wanted, namespace),
        preferred_anti=_preferred(unwanted, namespace),
    )


def _required(affinity: Json, namespace: str) -> tuple[AffinityTerm, ...]:
    terms: Iterable[Json] = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(_term(term, namespace) for term in terms)


def _preferred(affinity: Json, namespace: str) -> tuple[AffinityTerm, ...]:
    terms: Iterable[Json] = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(_term(term["podAffinityTerm"], namespace, term["weight"]) for term in terms)


def _term(term: Json, namespace: str, weight: int = 0) -> AffinityTerm:
    """Parse a term. Without namespaces and namespaceSelector, a term selects in the pod's own namespace."""
    named, selecting = term.get("namespaces") or (), term.get("namespaceSelector")
    namespaces = frozenset(named) if named or selecting is not None else frozenset((namespace,))
    selector = from_label_selector(term.get("labelSelector"))
    among = NOTHING if selecting is None else from_label_selector(selecting)
    where = f"{sorted(namespaces)} {among}" if among.selectable else str(sorted(namespaces))
    what = str(selector) if selector.selectable else "-"
    return AffinityTerm(term["topologyKey"], namespaces, selector, among, weight, f"term {where} {what}")


def read_amounts(amounts: Mapping[str, str] | None) -> Amounts:
    return {name: _amount(name, text) for name, text in amounts.items()} if amounts else {}


@bounded_cache(entries=4096, key_bytes=80)
def _amount(name: str, text: str) -> int:
    quantity = parse_quantity(str(text))
    return quantity.milli_value() if name == CPU else quantity.value()


def pod_requests(pod: Json, *, at_least: Amounts | None = None) -> Amounts:
    """Return the pod's requests. `at_least` provides defaults for containers without a request."""
    spec, actual = pod["spec"], _actual_resources(pod)

    def of_starting(container: Json) -> Amounts:
        requests = read_amounts((container.get("resources") or {}).get("requests"))
        return at_least | requests if at_least else requests

    def of_running(container: Json) -> Amounts:
        if not actual or (status := actual.get(container["name"])) is None:
            return of_starting(container)
        requests = read_amounts((container.get("resources") or {}).get("requests"))
        raise_to(requests, read_amounts((status.get("resources") or {}).get("requests")))
        raise_to(requests, read_amounts(status.get("allocatedResources")))
        return at_least | requests if at_least else requests

    total = aggregate(spec, of_running, of_starting)
    total |= _of_the_whole_pod(pod)
    add_to(total, read_amounts(spec.get("overhead")))
    return total


def _of_the_whole_pod(pod: Json) -> Amounts:
    requests = (pod["spec"].get("resources") or {}).get("requests")
    if not requests:
        return {}
    chosen = {name: text for name, text in requests.items() if name in _OF_A_WHOLE_POD or name.startswith("hugepages-")}
    return read_amounts(chosen)


def _actual_resources(pod: Json) -> dict[str, Json]:
    """Return the statuses of containers with reported resources. During a resize the greater amount counts."""
    status = pod.get("status") or {}
    statuses = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    return {status["name"]: status for status in statuses if status.get("resources")}
