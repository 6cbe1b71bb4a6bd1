"""Resource requests of a pod as integers, so that sums over many pods are cheap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from pilothouse.kinds.pod_resources import add_to, aggregate, raise_to
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity

Amounts: TypeAlias = dict[str, int]
"""Resource name → amount: cpu in millicores, other resources in whole units."""

CPU, MEMORY, PODS = "cpu", "memory", "pods"
FOR_CONTAINERS_WITHOUT: Amounts = {CPU: 100, MEMORY: 200 << 20}
"""Default requests of a container without requests, for scoring."""
_OF_A_WHOLE_POD = (CPU, MEMORY)


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
    return {each["name"]: each for each in statuses if each.get("resources")}
